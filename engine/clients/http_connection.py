"""`HttpConnection`: a background thread with one event loop and one httpx client, for `HttpClient`."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import orjson

from engine.api.errors import EngineUnavailable, PravahaError
from engine.clients.http_wire import WireError, error_from_response

ROUND_TRIP_S = 10.0
"""Timeout of a call; no call waits for an engine step."""
READ_TIMEOUT_S = 60.0
"""Read timeout of calls that compute something."""
SILENCE_S = 6.0
"""Silence after which the server counts as away, and a stream as broken: three times the interval of the
keep-alive comments in a stream (`ServerConfig.keep_alive_s`)."""
DELETE_S = 2.0
"""Timeout of a DELETE, which also bounds `close`."""

_log = logging.getLogger(__name__)
_JSON = {"content-type": "application/json"}

Result = TypeVar("Result")


class ServerSilent(EngineUnavailable):
    """The server did not answer in time: it hangs, or the network loses everything."""


class HttpConnection:
    """Requests to one server. Coroutines run on the background loop; `call` runs one from any thread.

    Attributes:
        model: the model that was chosen on a server of several; None for the server's first or only one.
        keeps_model: whether it is asked for also while the server does not have it.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        silence_s: float = SILENCE_S,
        model: str | None = None,
    ) -> None:
        """Make the connection, without a thread.

        Args:
            url: the server.
            api_key: its key.
            silence_s: how long the server may be silent before it counts as away.
            model: the only model to ask for; None for the first or only one, until another is chosen.
        """
        self.url = url
        self.model = model
        self.keeps_model = model is not None
        self._silence_s = silence_s
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._last_words: set[asyncio.Task[None]] = set()  # sent even if the connection is closed

    def start(self, background: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the thread; `background` makes a coroutine that runs until `close`."""
        self._thread = threading.Thread(
            target=self._run, args=(background,), name="pravaha-http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Cancel all tasks and end the thread. Further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()

    def of_model(self, path: str) -> str:
        """A path, with the model that was chosen as its query parameter."""
        if self.model is None:
            return path
        return f"{path}{'&' if '?' in path else '?'}model={quote(self.model, safe='')}"

    def with_model(self, body: dict[str, Any]) -> dict[str, Any]:
        """A body, with the model that was chosen."""
        return body if self.model is None else body | {"model": self.model}

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Run a callback on the loop, from any thread; ignored once the connection is closed."""
        if not self._closed:
            self._loop.call_soon_threadsafe(callback)

    def call(self, work: Coroutine[Any, Any, Result], *, wait_s: float = ROUND_TRIP_S) -> Result:
        """Run a coroutine on the loop and wait for its result.

        Raises:
            EngineUnavailable: no answer within `wait_s`, or the connection is closed.
        """
        if self._closed:
            work.close()
            raise EngineUnavailable("This client is closed.")
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(wait_s)
        except TimeoutError:
            future.cancel()
            raise EngineUnavailable(
                f"The server at {self.url} did not answer in {wait_s:.0f} seconds."
            ) from None

    def begin(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Run a coroutine on the loop without waiting for it; from any thread.

        The future fails with `EngineUnavailable` if the connection is closed.
        """
        if self._closed:
            work.close()
            future: Future[Result] = Future()
            future.set_exception(EngineUnavailable("This client is closed."))
            return future
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def get(self, path: str, *, within_s: float | None = None) -> Any:
        """The JSON object that answers a GET; None for 204. Args and raises as `post`."""
        return await self._exchange("GET", path, within_s)

    async def post(self, path: str, body: dict[str, Any], *, within_s: float | None = None) -> Any:
        """The JSON object that answers a POST; None for 204.

        Args:
            path: the endpoint.
            body: as JSON.
            within_s: how long the server may take, if it computes something.

        Raises:
            ServerSilent: no answer in that time.
            PravahaError: the error that the server reports, or that it does not answer.
        """
        return await self._exchange("POST", path, within_s, content=orjson.dumps(body))

    async def download(self, path: str, progress: Callable[[float], None]) -> bytes:
        """The body that answers a GET, however long it takes while data arrive.

        Args:
            path: the endpoint.
            progress: called with the share that has arrived.

        Raises:
            PravahaError: as `post`.
        """
        response = await self._open("GET", path)
        parts: list[bytes] = []
        size = int(response.headers.get("content-length", 0))
        try:
            async for part in response.aiter_bytes():
                parts.append(part)
                if size:
                    progress(min(1.0, response.num_bytes_downloaded / size))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            await response.aclose()
        return b"".join(parts)

    async def open_stream(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """Post a body that is answered by a stream; the caller reads and closes the response.

        Raises:
            PravahaError: as `post`.
        """
        return await self._open("POST", path, content=orjson.dumps(body), headers=_JSON)

    async def resume_stream(self, path: str, *, after: int) -> httpx.Response:
        """The events of a stream after number `after`; as `open_stream`.

        Raises:
            PravahaError: as `post`.
        """
        return await self._open("GET", path, headers={"last-event-id": str(after)})

    def delete_soon(self, path: str) -> None:
        """Send a DELETE without waiting, on the loop; `close` waits for it. A failure is logged."""
        task = self._loop.create_task(self._delete(path))
        self._last_words.add(task)
        task.add_done_callback(self._last_words.discard)

    async def _delete(self, path: str) -> None:
        try:
            async with asyncio.timeout(DELETE_S):
                await self._exchange("DELETE", path, DELETE_S)
        except (PravahaError, TimeoutError) as error:
            _log.debug("DELETE %s failed: %s", path, error)

    async def _open(self, method: str, path: str, **options: Any) -> httpx.Response:
        request = self._http.build_request(
            method, path, timeout=httpx.Timeout(self._silence_s), **options
        )
        try:
            response = await self._http.send(request, stream=True)
            if response.status_code != 200:
                await response.aread()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.status_code != 200:
            self._decode(response)
            raise self.format_error()
        return response

    def format_error(self) -> WireError:
        """The error for an answer that is not in the format of Pravāha's API."""
        return WireError(f"The server at {self.url} is not a Pravāha server.")

    async def _exchange(
        self, method: str, path: str, within_s: float | None, *, content: bytes | None = None
    ) -> Any:
        headers = _JSON if content is not None else {}
        timeout = httpx.Timeout(self._silence_s, read=within_s or self._silence_s)
        try:
            response = await self._http.request(
                method, path, content=content, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return self._decode(response)

    def _decode(self, response: httpx.Response) -> Any:
        if response.status_code == 204:
            return None
        try:
            data = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            data = None
        if response.status_code != 200:
            raise error_from_response(response.status_code, data)
        if not isinstance(data, dict):
            raise self.format_error()
        return data

    def _unreachable(self, error: Exception) -> EngineUnavailable:
        if isinstance(error, httpx.TimeoutException):
            return ServerSilent(f"No word from the server at {self.url} in time.")
        return EngineUnavailable(
            f"The server at {self.url} does not answer ({type(error).__name__})."
        )

    def _run(self, background: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.set_event_loop(self._loop)
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=self._headers,
            limits=httpx.Limits(max_connections=None),
            trust_env=False,  # a proxy between the screen and its engine would only add latency
        )
        task = self._loop.create_task(background())  # noqa: F841 - keeps the task alive
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._shut_down())
            self._loop.close()

    async def _shut_down(self) -> None:
        await asyncio.sleep(0)  # a task must have started before it can be cancelled cleanly
        tasks = asyncio.all_tasks() - {asyncio.current_task()} - self._last_words
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._last_words, return_exceptions=True)
        await self._http.aclose()
