"""The middleware that lets a request wait for its model instead of failing.

A handler asks for its model before it begins to answer (`app.server.calls.model.loaded_model`). If the model
is being loaded, what the handler answers is dropped, and the same request is handled again when the model is
loaded, so that no handler and no face has to know. A request for a stream gets signs of life meanwhile,
because many clients give up when nothing arrives for long: its status is 200 from then on, and an error that
follows is a part of the stream. In server-sent events the signs are comments with the progress. Lines of JSON
(Ollama's API) have no comments: there a sign is a space before the first line, which every reader of JSON
skips.

Cost: the body of a request is kept until the request has got its model.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.middleware.disconnect import disconnected
from app.server.process.context import ServerContext
from app.server.process.drain import shutting_down_error
from app.server.process.request_models import RequestModels, current_request_models
from app.server.wire.errors import ApiError, error_response
from app.server.wire.stream_headers import raw_stream_headers
from engine.api.errors import EngineUnavailable, PravahaError
from engine.runtime.served_model import ModelChanging


@dataclass(frozen=True, slots=True)
class _StreamKind:
    """How streams of a media type are kept alive, and end with an error.

    Attributes:
        media_type: of the response.
        sign: what is sent during a load.
        error: the body of an error response as a part of the stream.
    """

    media_type: str
    sign: Callable[[ModelChanging], bytes]
    error: Callable[[bytes], bytes]


def _error_event(body: bytes) -> bytes:
    """An error response of any face as an event; Anthropic's has a name."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        fields = {}
    named = isinstance(fields, dict) and fields.get("type") == "error"
    return (b"event: error\n" if named else b"") + b"data: " + body + b"\n\n"


_EVENTS = _StreamKind(
    "text/event-stream",
    lambda change: f": loading {change.model.name}, {change.progress:.0%}\n\n".encode(),
    _error_event,
)
_LINES = _StreamKind("application/x-ndjson", lambda _: b" ", lambda body: body.rstrip() + b"\n")
_LINES_PATHS = ("/api/chat", "/api/generate")
"""Paths whose answers are lines, and are streamed unless the request says no."""


class ModelWaits:
    """Handles requests again whose model was not loaded, and ends the leases of all."""

    def __init__(
        self, app: ASGIApp, *, context: ServerContext, is_upload: Callable[[str], bool]
    ) -> None:
        """Wrap the application.

        Args:
            app: the application.
            context: the server.
            is_upload: whether the bodies of a path are files: they are not kept, and use no model.
        """
        self._app = app
        self._context = context
        self._is_upload = is_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, several times if it has to wait."""
        if scope["type"] != "http" or self._is_upload(scope["path"]):
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        models = RequestModels(self._context.models, on_served=body.drop)
        token = current_request_models.set(models)
        answer = _Answer(models, body, send)
        try:
            while True:
                await self._app(scope, body.replay(), answer.send)
                change = answer.next_attempt()
                if change is None:
                    return
                if self._context.drain.draining:
                    await answer.refuse(shutting_down_error(), scope, body.receive)
                    return
                with self._context.drain.work():
                    if not await self._wait(change, models, body, answer, scope):
                        return
        finally:
            models.release()
            current_request_models.reset(token)

    async def _wait(
        self,
        change: ModelChanging,
        models: RequestModels,
        body: "_Body",
        answer: "_Answer",
        scope: Scope,
    ) -> bool:
        """Wait for a load, or for its failure, which the next attempt reports; False if nobody waits."""
        finished = asyncio.wrap_future(change.finished)  # never cancelled: the change is not ours
        # Its error counts as seen, also if nobody waits any more.
        finished.add_done_callback(lambda done: done.exception())
        gone = asyncio.create_task(disconnected(body.receive))
        expired = asyncio.create_task(self._context.drain.wait_expired())
        tasks = (finished, gone, expired)
        stream = body.asked_stream(scope["path"])
        try:
            while True:
                await asyncio.wait(
                    tasks,
                    timeout=self._context.config.keep_alive_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if finished.done():
                    models.failed = _failure(change, finished.exception())
                    return True
                if gone.done():
                    self._context.counters.disconnected(scope["route"].path)
                    return False
                if expired.done():
                    await answer.refuse(shutting_down_error(), scope, body.receive)
                    return False
                if stream is not None:
                    await answer.tell(stream, change)
        finally:
            for task in (gone, expired):
                task.cancel()
            await asyncio.gather(gone, expired, return_exceptions=True)


def _failure(change: ModelChanging, error: BaseException | None) -> PravahaError | None:
    if error is None or isinstance(error, EngineUnavailable):
        return error
    return EngineUnavailable(f"The model {change.model.name} cannot be loaded: {error}")


class _Body:
    """The body of a request, which can be read again until the request has got its model."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self._messages: list[Message] = []
        self._kept = True

    @property
    def kept(self) -> bool:
        """Whether the body can be read again."""
        return self._kept

    def drop(self) -> None:
        """Free what was kept: the request is not handled again."""
        self._kept = False
        self._messages.clear()

    def replay(self) -> Receive:
        """A function that receives the messages so far again, and then the rest."""
        seen = 0

        async def receive() -> Message:
            nonlocal seen
            if seen < len(self._messages):
                seen += 1
                return self._messages[seen - 1]
            message = await self.receive()
            if self._kept and message["type"] == "http.request":
                self._messages.append(message)
                seen += 1
            return message

        return receive

    def asked_stream(self, path: str) -> _StreamKind | None:
        """The kind of stream that the body asks for at this path; None if it asks for none."""
        try:
            body = orjson.loads(b"".join(one.get("body", b"") for one in self._messages))
        except orjson.JSONDecodeError:
            return None
        if not isinstance(body, dict):
            return None
        if path in _LINES_PATHS:
            return _LINES if body.get("stream") in (None, True) else None
        return _EVENTS if body.get("stream") is True else None


class _Answer:
    """Sends the answer of the last attempt; those before it are dropped."""

    def __init__(self, models: RequestModels, body: _Body, send: Send) -> None:
        self._models = models
        self._body = body
        self._send = send
        self._dropping: ModelChanging | None = None
        self._told: _StreamKind | None = None  # the response began with signs of life
        self._error: list[bytes] | None = None  # body of an error that is to be part of the stream

    def next_attempt(self) -> ModelChanging | None:
        """What the next attempt has to wait for; None if this one was answered."""
        change, self._dropping = self._dropping, None
        self._models.loading = None
        return change

    async def send(self, message: Message) -> None:
        """Take a message of the application."""
        if self._dropping is not None:
            return
        if message["type"] != "http.response.start":
            await self._send_body(message)
            return
        if self._models.loading is not None and self._body.kept:
            self._dropping = self._models.loading
            return
        self._body.drop()
        if self._told is None:
            await self._send(message)
        elif not _is_stream(message, self._told):
            self._error = []

    async def tell(self, stream: _StreamKind, change: ModelChanging) -> None:
        """Send a sign of life, the first one after the head of the response."""
        if self._told is None:
            self._told = stream
            headers = raw_stream_headers(f"{stream.media_type}; charset=utf-8")
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send_part(stream.sign(change))

    async def refuse(self, error: ApiError, scope: Scope, receive: Receive) -> None:
        """Answer with an error instead of handling the request again."""
        self._body.drop()
        await error_response(error)(scope, receive, self.send)

    async def _send_body(self, message: Message) -> None:
        if self._error is None or self._told is None:
            await self._send(message)
            return
        self._error.append(message.get("body", b""))
        if message.get("more_body", False):
            return
        await self._send_part(self._told.error(b"".join(self._error)))
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_part(self, part: bytes) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": True})


def _is_stream(start: Message, kind: _StreamKind) -> bool:
    content_type = Headers(raw=start["headers"]).get("content-type", "")
    return bool(start["status"] == 200) and content_type.startswith(kind.media_type)
