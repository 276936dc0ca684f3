"""`ResponseSocket`: the Responses API over one WebSocket.

Each message `response.create` is answered as `POST /v1/responses` with `stream: true` is: it passes through
the same application as a request of its own, so that fields, limits, models that load and the drain are the
same code. The events of its stream become messages. Responses are generated one after the other.

Two tasks serve a connection: one receives, so that a client that leaves is noticed at once, the other
answers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from app.server.calls.socket_history import SocketHistory
from app.server.wire.body_size import check_body_size
from app.server.wire.errors import ApiError, bad_request, error_body, from_engine
from app.server.wire.image_literals import without_images
from app.server.wire.json_size import check_json_size
from app.server.wire.large_body import LargeBody, large_message

PATH = "/v1/responses"
MAX_WAITING = 4
"""Messages that wait for the answers to those before them."""
CREATE, STEER = "response.create", "response.steer"
WARM_UP = "warm_up"
"""Name in the state of a request that only reads its prompt."""
_LEAVE_S = 10.0
_EVENT_END = b"\n\n"
_DATA = b"data: "
_OF_THE_HANDSHAKE = (
    b"connection",
    b"content-",
    b"sec-websocket-",
    b"transfer-",
    b"upgrade",
    b"x-request-id",
)
_TRANSPORT = ("type", "stream", "generate", "stream_id", "event_id")
"""Members of a message that are not of the response."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A message that waits for the answers to those before it.

    Attributes:
        request: the body of the request that it stands for, as text: parsed it takes many times the memory.
        lane: its `stream_id`, None without one.
        is_warm_up: whether its prompt is only read.
        place: its place among the large bodies.
    """

    request: bytes
    lane: Any
    is_warm_up: bool
    place: LargeBody


class ResponseSocket:
    """One connection."""

    def __init__(self, socket: WebSocket, app: ASGIApp) -> None:
        """Nothing is received yet.

        Args:
            socket: the connection.
            app: answers the requests.
        """
        self._socket = socket
        self._app = app
        self._history = SocketHistory()
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue(MAX_WAITING)
        self._gone = asyncio.Event()

    async def serve(self) -> None:
        """Answer until the client leaves."""
        await self._socket.accept()
        answering = asyncio.create_task(self._answer_all())
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] != "websocket.receive":
                    return
                text = message.get("text")
                await self._take(message.get("bytes") or b"" if text is None else text.encode())
        finally:
            self._gone.set()  # ends what runs, as a client that leaves over HTTP
            await asyncio.wait((answering,), timeout=_LEAVE_S)
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            while not self._waiting.empty():
                self._waiting.get_nowait().place.free()

    async def _take(self, data: bytes) -> None:
        """Queue a message, or say what is wrong with it."""
        event: Any = None
        place: LargeBody | None = None
        try:
            place = self._check_size(data)
            event = _parsed(data)
            if event.get("type") == STEER:
                await self._send(_encoded(_unsteered(event)))
                place.free()
                return
            _check(event)
            if self._waiting.full():
                raise ApiError(
                    429, f"{MAX_WAITING} messages wait for their answers.", code="too_many_messages"
                )
            body = {name: value for name, value in event.items() if name not in _TRANSPORT}
            request = _encoded(body | {"stream": True})
        except ApiError as error:
            if place is not None:
                place.free()
            await self._tell(error, _lane_of(event))
            return
        self._waiting.put_nowait(_Waiting(request, _lane_of(event), _is_warm_up(event), place))

    def _check_size(self, data: bytes) -> LargeBody:
        """Refuse what is refused over HTTP before it is parsed; the place of a large message.

        Raises:
            ApiError: 413 or 400, it is too large or has too many values; 429, there is no place.
        """
        scope = self._socket.scope
        text = without_images(data)
        check_body_size(scope, len(text))
        check_json_size(text)
        return large_message(scope, len(data))

    async def _answer_all(self) -> None:
        gone = asyncio.create_task(self._gone.wait())
        try:
            while not self._gone.is_set():
                taking = asyncio.create_task(self._waiting.get())
                await asyncio.wait((taking, gone), return_when=asyncio.FIRST_COMPLETED)
                if self._gone.is_set():
                    if taking.done():
                        taking.result().place.free()
                    taking.cancel()
                    return
                waiting = taking.result()
                try:
                    await self._answer(waiting)
                except Exception as error:
                    await self._tell(from_engine(error), waiting.lane)
                finally:
                    waiting.place.free()
        finally:
            gone.cancel()

    async def _answer(self, waiting: _Waiting) -> None:
        """Answer one message, by messages up to the last event of its response."""
        exchange = _Exchange(
            waiting, self._gone, lambda data: self._send(_in_lane(data, waiting.lane))
        )
        scope = self._scope(len(waiting.request), is_warm_up=waiting.is_warm_up)
        await self._app(scope, exchange.receive, exchange.send)
        await exchange.finish()

    def _scope(self, length: int, *, is_warm_up: bool) -> Scope:
        """The request that stands for a message: it has the headers of the connection, such as the key."""
        given = self._socket.scope
        headers = [
            (name, value)
            for name, value in given["headers"]
            if not name.startswith(_OF_THE_HANDSHAKE)
        ]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https" if given["scheme"] == "wss" else "http",
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [
                *headers,
                (b"content-type", b"application/json"),
                (b"content-length", str(length).encode()),
            ],
            "server": given.get("server"),
            "client": given.get("client"),
            "state": {**self._history.state, WARM_UP: is_warm_up},
        }

    async def _tell(self, error: ApiError, lane: Any) -> None:
        """Send an error that is no event of a response."""
        fields = error_body(error.status_code, error.detail, param=error.param, code=error.code)
        await self._send(_in_lane(_error_message(error.status_code, fields), lane))

    async def _send(self, data: bytes) -> None:
        if not self._gone.is_set():
            with suppress(WebSocketDisconnect, RuntimeError):  # it is leaving
                await self._socket.send_text(data.decode())


class _Exchange:
    """One request to the application, whose answer is forwarded as messages."""

    def __init__(
        self, waiting: _Waiting, gone: asyncio.Event, forward: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._body: bytes | None = waiting.request
        self._place = waiting.place
        self._gone = gone
        self._forward = forward
        self._status = 200
        self._is_stream = False
        self._rest = b""  # of a stream, the beginning of an event; else the body

    async def receive(self) -> Message:
        """The body, then that the client has left."""
        if self._body is not None:
            body, self._body = self._body, None
            self._place.free()  # from here on the request has one of its own
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._is_stream = any(
                name == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in message["headers"]
            )
            return
        self._rest += message.get("body", b"")
        if self._is_stream:
            *events, self._rest = self._rest.split(_EVENT_END)
            for event in events:
                data = _data_of(event)
                if data is not None:
                    await self._forward(data)

    async def finish(self) -> None:
        """Forward the error that came instead of a stream."""
        if not self._is_stream and self._rest:
            await self._forward(_error_message(self._status, orjson.loads(self._rest)))


def _parsed(data: bytes) -> dict[str, Any]:
    """The object that a message is.

    Raises:
        ApiError: 400, it is none.
    """
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"The message is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(event, dict):
        raise bad_request("The message must be a JSON object.")
    return event


def _check(event: dict[str, Any]) -> None:
    """Check what a message says beside the response.

    Raises:
        ApiError: 400, it cannot be answered.
    """
    if event.get("type") != CREATE:
        raise bad_request(
            f"`type` must be '{CREATE}', not {str(event.get('type'))[:80]!r}.", param="type"
        )
    if event.get("background"):
        raise bad_request(
            "A response over a WebSocket is not in the background: it ends with its connection.",
            param="background",
        )


def _encoded(value: dict[str, Any]) -> bytes:
    """A value of a message as JSON, which the library reads to a greater depth than it writes.

    Raises:
        ApiError: 400, it nests too deep.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise bad_request("The message nests too deep.") from None


def _lane_of(event: Any) -> Any:
    return event.get("stream_id") if isinstance(event, dict) else None


def _is_warm_up(event: dict[str, Any]) -> bool:
    options = event.get("prompt_cache_options")
    return event.get("generate") is False or (
        isinstance(options, dict) and options.get("prewarm") is True
    )


def _data_of(event: bytes) -> bytes | None:
    """The JSON of a server-sent event; None for a comment.

    An error that is no event of a response, such as that of a model that cannot be loaded, has no type.
    """
    for line in event.split(b"\n"):
        if line.startswith(_DATA):
            data = line[len(_DATA) :]
            if data.startswith(b'{"error":'):
                return _error_message(503, orjson.loads(data))
            return data
    return None


def _error_message(status: int, fields: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": "error", "status": status, **fields})


def _in_lane(data: bytes, lane: Any) -> bytes:
    """A message with the `stream_id` that the client has given; the JSON is not parsed for it."""
    if not isinstance(lane, str):
        return data
    return data[:-1] + b',"stream_id":' + orjson.dumps(lane) + b"}"


def _unsteered(event: dict[str, Any]) -> dict[str, Any]:
    """The answer to a message that is to go into a running response, which no model here can do."""
    return {
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": {
            "type": "invalid_request_error",
            "code": "steering_not_supported",
            "message": "A response that runs cannot be steered here: send the input with the next one.",
        },
        "steer": {
            "input": event.get("input"),
            "previous_response_id": event.get("previous_response_id"),
        },
    }
