"""`TokenStreams`: one SSE stream per request of `HttpClient`, read into the request's mailbox.

Closing a stream cancels its request, which frees its blocks on the server.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from engine.api.request import FinishReason, Timings, TokenBatch
from engine.clients.http_connection import HttpConnection
from engine.clients.http_wire import WireError, error_from_response, token_batch


@dataclass(slots=True)
class _Stream:
    """A request and its batches that have not been drained. `batches` is guarded by `lock`."""

    request_id: str
    queued: float
    seed: int
    timings: Timings
    prompt_alternatives: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    batches: list[TokenBatch] = field(default_factory=list)
    reader: "asyncio.Task[None] | None" = None

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
        response = await self._connection.open_stream(path, body)
        self._streams[request_id] = stream
        stream.reader = asyncio.create_task(self._read(response, stream))
        return response.headers

    def cancel(self, request_id: str) -> None:
        """Close a request's stream; unknown ids are ignored."""
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
        """Fill the mailbox until the stream ends; a stream that breaks ends in a final batch too."""
        reason = FinishReason.ERROR
        message: str | None = "The server ended the stream too early."
        try:
            async for line in response.aiter_lines():
                if line.startswith("data: {") and self._take_event(line, stream):
                    return
        except asyncio.CancelledError:
            reason, message = FinishReason.ABORT, None
        except WireError as error:
            message = str(error)
        except httpx.HTTPError as error:
            message = f"The connection to the server broke ({type(error).__name__})."
        finally:
            # Closing the response before its end tells the server to abort the request.
            with suppress(httpx.HTTPError):
                await response.aclose()
        self._deliver(stream, _final_batch(stream, reason, message))

    def _take_event(self, line: str, stream: _Stream) -> bool:
        """Deliver one event; True if it was the last one."""
        try:
            data = orjson.loads(line.removeprefix("data: "))
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
        finish_reason=last.finish_reason,
        error=last.error,
        cached_tokens=last.cached_tokens,
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
