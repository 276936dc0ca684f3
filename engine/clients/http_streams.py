"""`TokenStreams`: one SSE stream per request of `HttpClient`, read into the request's mailbox.

Requests are `resumable`: when the connection breaks, the server goes on with the request for some time, and
the reader asks for the events after the last complete one. Text is neither lost nor repeated.
"""

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from engine.api.errors import EngineUnavailable, PravahaError, UnknownRequest
from engine.api.request import FinishReason, Timings, TokenBatch
from engine.clients.http_connection import HttpConnection
from engine.clients.http_wire import WireError, error_from_response, token_batch
from engine.clients.sse_decoder import SseDecoder

_log = logging.getLogger(__name__)

RESUME_S = 30.0
"""How long a broken stream is resumed; the server keeps its request as long (`ServerConfig.resume_s`)."""
BACK_OFF_S = (0.1, 0.25, 0.5, 1.0)
"""Pauses between two attempts."""


@dataclass(slots=True)
class _Stream:
    """A request and its batches that have not been drained.

    Attributes:
        batches: guarded by `lock`.
        last_event: number of the last complete event.
    """

    request_id: str
    queued: float
    seed: int
    timings: Timings
    prompt_alternatives: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    batches: list[TokenBatch] = field(default_factory=list)
    reader: "asyncio.Task[None] | None" = None
    last_event: int = 0

    def put(self, batch: TokenBatch) -> bool:
        """Add a batch; True if the mailbox was empty."""
        with self.lock:
            self.batches.append(batch)
            return len(self.batches) == 1

    def take(self) -> list[TokenBatch]:
        """Remove and return all batches."""
        with self.lock:
            batches, self.batches = self.batches, []
        return batches


class TokenStreams:
    """The streams of one connection, by request id.

    Threads: `open` runs on the connection's loop; `drain` and `cancel` may be called from any thread.
    """

    def __init__(
        self,
        connection: HttpConnection,
        *,
        wake: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """`wake` is called when a mailbox goes from empty to non-empty."""
        self._connection = connection
        self._wake = wake
        self._clock = clock
        self._streams: dict[str, _Stream] = {}

    async def open(
        self,
        request_id: str,
        path: str,
        body: dict[str, Any],
        *,
        seed: int | None,
        prompt_alternatives: int = 0,
    ) -> httpx.Headers:
        """Post a request and start to read the stream that answers it; the response's headers.

        Args:
            request_id: the key of the mailbox.
            path: the endpoint.
            body: as JSON.
            seed: reported by the final batch if the stream breaks before the server names one.
            prompt_alternatives: how many alternatives prompt logprobs were requested with.

        Raises:
            PravahaError: the error that the server reports, or that it does not answer.
        """
        stream = _Stream(
            request_id,
            queued=self._clock(),
            seed=seed or 0,
            timings=Timings(self._clock()),
            prompt_alternatives=prompt_alternatives,
        )
        try:
            response = await self._connection.open_stream(path, body)
        except (asyncio.CancelledError, EngineUnavailable):
            self._connection.delete_soon(_path(request_id))  # the request may have arrived
            raise
        self._streams[request_id] = stream
        stream.reader = asyncio.create_task(self._read(response, stream))
        return response.headers

    def cancel(self, request_id: str) -> None:
        """Close a request's stream and abort it on the server; unknown ids are ignored."""
        stream = self._streams.get(request_id)
        if stream is not None and stream.reader is not None:
            self._connection.call_soon(stream.reader.cancel)

    def drain(self, request_id: str) -> TokenBatch | None:
        """All new tokens of a request as one batch, or None; the final batch removes the request."""
        stream = self._streams.get(request_id)
        batches = stream.take() if stream is not None else []
        if not batches:
            return None
        joined = batches[0] if len(batches) == 1 else _join(batches)
        if joined.finish_reason is not None:
            self._streams.pop(request_id, None)
        return joined

    async def _read(self, response: httpx.Response, stream: _Stream) -> None:
        """Fill the mailbox until the final batch; a stream that cannot be resumed gets one too."""
        reason, message = FinishReason.ERROR, None
        try:
            while not await self._read_events(response, stream):
                response = await self._resume(stream)
            return
        except asyncio.CancelledError:
            reason = FinishReason.ABORT
        except PravahaError as error:
            message = str(error)
        # The server would let the request run for a while.
        self._connection.delete_soon(_path(stream.request_id))
        self._deliver(stream, _final_batch(stream, reason, message))

    async def _read_events(self, response: httpx.Response, stream: _Stream) -> bool:
        """Deliver the events of a response; False if it broke off before the final one."""
        decoder = SseDecoder()
        try:
            async for chunk in response.aiter_bytes():
                for event in decoder.feed(chunk):
                    stream.last_event = event.number or stream.last_event
                    if event.data.startswith(b"{") and self._take_event(event.data, stream):
                        return True
        except httpx.HTTPError as error:
            _log.warning("The stream of %s broke (%r).", stream.request_id, error)
        finally:
            with suppress(httpx.HTTPError):
                await response.aclose()
        return False

    async def _resume(self, stream: _Stream) -> httpx.Response:
        """The rest of a stream after the last complete event, as soon as the server can be reached.

        Raises:
            PravahaError: the server no longer has the request, or was away for `RESUME_S`.
        """
        broke = self._clock()
        for attempt in itertools.count():
            try:
                return await self._connection.resume_stream(
                    _path(stream.request_id), after=stream.last_event
                )
            except UnknownRequest as error:
                raise EngineUnavailable(
                    "The connection to the server broke, and the server no longer has the request: it "
                    "was restarted, or the connection was away for too long. The answer can be "
                    "generated again."
                ) from error
            except EngineUnavailable as error:
                if self._clock() - broke >= RESUME_S:
                    raise EngineUnavailable(
                        f"The connection to the server broke and did not come back in {RESUME_S:.0f} "
                        f"seconds. {error} The answer can be generated again."
                    ) from error
            await asyncio.sleep(BACK_OFF_S[min(attempt, len(BACK_OFF_S) - 1)])
        raise AssertionError("the loop does not end")

    def _take_event(self, event: bytes, stream: _Stream) -> bool:
        """Deliver one event; True if it was the last one."""
        try:
            data = orjson.loads(event)
        except orjson.JSONDecodeError as error:
            raise WireError("The server's stream contains an event that is not JSON.") from error
        if "error" in data:
            message = str(error_from_response(500, data))
            self._deliver(stream, _final_batch(stream, FinishReason.ERROR, message))
            return True
        for choice in data.get("choices", ()):
            batch = token_batch(
                choice,
                request_id=stream.request_id,
                queued=stream.queued,
                prompt_alternatives=stream.prompt_alternatives,
            )
            stream.seed, stream.timings = batch.seed, batch.timings
            self._deliver(stream, batch)
            if batch.finish_reason is not None:
                return True
        return False

    def _deliver(self, stream: _Stream, batch: TokenBatch) -> None:
        if stream.put(batch):
            self._wake()


def _path(request_id: str) -> str:
    return f"/streams/{quote(request_id, safe='')}"


def _join(batches: Sequence[TokenBatch]) -> TokenBatch:
    """Several batches of one request as one."""
    last = batches[-1]
    return TokenBatch(
        request_id=last.request_id,
        token_ids=tuple(one for batch in batches for one in batch.token_ids),
        text="".join(batch.text for batch in batches),
        timings=last.timings,
        seed=last.seed,
        logprobs=tuple(one for batch in batches for one in batch.logprobs),
        top_logprobs=tuple(one for batch in batches for one in batch.top_logprobs),
        token_id_logprobs=tuple(one for batch in batches for one in batch.token_id_logprobs),
        finish_reason=last.finish_reason,
        error=last.error,
        cached_tokens=last.cached_tokens,
        drafted=tuple(one for batch in batches for one in batch.drafted),
        prompt_logprobs=batches[0].prompt_logprobs,
    )


def _final_batch(stream: _Stream, reason: FinishReason, error: str | None) -> TokenBatch:
    """The final batch of a stream that the server did not finish."""
    return TokenBatch(
        request_id=stream.request_id,
        token_ids=(),
        text="",
        timings=stream.timings,
        seed=stream.seed,
        finish_reason=reason,
        error=error,
    )
