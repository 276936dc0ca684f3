"""`RunningResponses`: responses in the background, which run whether anybody reads them or not.

Their events are numbered from 0 by `sequence_number`. Any number of readers may read them, from any one on.

Invariants:

* A background response has one task, which alone advances its events; it ends by itself, by `cancel`, or when
  the server's drain expires. Events that fail end it, too: no reader is left without a last event.
* The events of a response are kept while it runs, and those of the last `KEPT_RESPONSES` that ended, of each
  as many as `KeptEvents` keeps.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, Protocol

from app.server.process.drain import Drain, shutting_down_error
from app.server.process.kept_events import KeptEvents
from app.server.wire.errors import ApiError, bad_request, from_engine

log = logging.getLogger(__name__)

KEPT_RESPONSES = 64


class BackgroundAnswer(Protocol):
    """The response of a stream."""

    id: str
    status: str

    def response(self) -> dict[str, Any]:
        """The response as it is now."""
        ...

    def failure(self, error: ApiError) -> bytes:
        """End the response with an error; its last event."""
        ...

    def cancel(self) -> bytes:
        """End the response because the client asked for it; its last event."""
        ...


class RunningResponse:
    """One response in the background.

    Attributes:
        answer: the response as it is now.
    """

    def __init__(
        self,
        answer: BackgroundAnswer,
        events: AsyncGenerator[bytes, None],
        resources: AsyncExitStack,
        drain: Drain,
        keep: Callable[[], Awaitable[None]],
    ) -> None:
        """Start it.

        Args:
            answer: its response.
            events: the stream.
            resources: closed at the end.
            drain: of the server.
            keep: keeps a response that was ended before its time.
        """
        self.answer = answer
        self._events = events
        self._resources = resources
        self._drain = drain
        self._keep = keep
        self._kept = KeptEvents()
        self._ended = False
        self._changed = asyncio.Event()
        self._cancelled = False
        self._pump = asyncio.create_task(self._read_all())
        self._task = asyncio.create_task(self._run())

    @property
    def ended(self) -> bool:
        """Whether there are no more events to come."""
        return self._ended

    @property
    def _runs(self) -> bool:
        return self.answer.status in ("queued", "in_progress")

    async def cancel(self) -> None:
        """End the response, if it has not ended; returns when it has."""
        if self._runs:
            self._cancelled = True
            self._pump.cancel()
        await asyncio.shield(self._task)

    def check(self, after: int) -> None:
        """Refuse to read on after an event that does not exist, or whose successor is not kept.

        Raises:
            ApiError: 400 or 410.
        """
        count = self._kept.count
        if after >= count:
            raise bad_request(
                f"The stream has no event {after} yet; its last one is {count - 1}.",
                param="starting_after",
            )
        self._kept.check(after + 1)

    async def read(self, after: int = -1) -> AsyncGenerator[bytes, None]:
        """The events after number `after`, past and future."""
        number = after + 1
        while True:
            while number < self._kept.count:
                if number < self._kept.first:
                    raise ApiError(410, "The reader is too slow.", code="events_dropped")
                yield self._kept[number]
                number += 1
            if self._ended:
                return
            await self._changed.wait()

    async def _run(self) -> None:
        expired = asyncio.create_task(self._drain.wait_expired())
        try:
            await asyncio.wait((self._pump, expired), return_when=asyncio.FIRST_COMPLETED)
            if not self._runs:
                await asyncio.wait((self._pump,))  # its end is only kept and told yet
            if not self._pump.done():
                self._pump.cancel()
                await asyncio.gather(self._pump, return_exceptions=True)
                self._add(self.answer.failure(shutting_down_error()))
                await self._keep()
            elif self._pump.cancelled() and self._cancelled:
                self._add(self.answer.cancel())
                await self._keep()
            elif not self._pump.cancelled() and (error := self._pump.exception()) is not None:
                self._add(self.answer.failure(from_engine(error)))
                await self._keep()
        except Exception:  # it is kept as it was before, and its readers have its end
            log.exception("the response %s cannot be kept", self.answer.id)
        finally:
            expired.cancel()
            self._pump.cancel()
            await asyncio.gather(self._pump, expired, return_exceptions=True)
            await self._resources.aclose()
            self._ended = True
            self._tell()

    async def _read_all(self) -> None:
        async with aclosing(self._events):
            async for event in self._events:
                self._add(event)

    def _add(self, event: bytes) -> None:
        self._kept.add(event)
        self._tell()

    def _tell(self) -> None:
        """Wake the readers."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class RunningResponses:
    """The background responses of a server, by id. All methods run on the event loop."""

    def __init__(self, drain: Drain) -> None:
        self._drain = drain
        self._responses: dict[str, RunningResponse] = {}

    def start(
        self,
        answer: BackgroundAnswer,
        events: AsyncGenerator[bytes, None],
        resources: AsyncExitStack,
        keep: Callable[[], Awaitable[None]],
    ) -> RunningResponse:
        """Run a response in the background; arguments as `RunningResponse`."""
        ended = [name for name, one in self._responses.items() if one.ended]
        for name in ended[: max(0, len(ended) - KEPT_RESPONSES + 1)]:
            del self._responses[name]
        running = RunningResponse(answer, events, resources, self._drain, keep)
        self._responses[answer.id] = running
        return running

    def get(self, response_id: str) -> RunningResponse | None:
        """A response that runs, or has ended a short time ago."""
        return self._responses.get(response_id)

    async def discard(self, response_id: str) -> None:
        """End a response and forget its events; unknown ids are ignored."""
        running = self._responses.pop(response_id, None)
        if running is not None:
            await running.cancel()
