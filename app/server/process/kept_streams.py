"""`KeptStreams`: streams whose request goes on for a while after its client was disconnected.

Only requests with `resumable` are kept. Their events are numbered from 1, in the `id` field of server-sent
events. A client that lost the connection asks for those after the last number that it has and gets exactly
the rest; nothing is generated again.

Invariants:

* The answer's generator is advanced only by a reader, so that a slow or absent one leaves its tokens in
  the engine's mailbox, which merges them. A reader that is cancelled leaves the pending step to the next one.
* A stream has at most one reader: a new one ends the reader before it, whose connection may be dead without
  the server knowing it.
* A stream without a reader is closed after `resume_s` seconds, or when the server's drain expires.

Cost: a task for each event, and the events themselves, as many as `KeptEvents` keeps for each stream.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress

from app.server.process.drain import Drain
from app.server.process.kept_events import KeptEvents
from app.server.wire.errors import ApiError, bad_request, from_engine
from app.server.wire.sse import error_event, numbered


class KeptStream:
    """The events of one request, for one reader after another.

    Attributes:
        turn: of the present reader; it ends when this is done.
        ended: whether the events are exhausted.
    """

    def __init__(self, events: AsyncGenerator[bytes, None], resources: AsyncExitStack) -> None:
        """`resources` are closed with the stream, or when the events are exhausted."""
        self._events = events
        self._resources = resources
        self._kept = KeptEvents()
        self._step: asyncio.Task[bytes | None] | None = None
        self._failed = False
        self.ended = False
        self.turn: asyncio.Future[None] | None = None

    def check(self, after: int) -> None:
        """Refuse to continue after an event that does not exist or whose successor was dropped.

        Raises:
            ApiError: 400 or 410.
        """
        count = self._kept.count
        if after > count:
            raise bad_request(
                f"The stream has {count} events so far; there is none with the id {after}.",
                param="last-event-id",
            )
        self._kept.check(after)

    def next_turn(self) -> asyncio.Future[None]:
        """End the present reader; the turn of the next one."""
        self._end_reader()
        self.turn = asyncio.get_running_loop().create_future()
        return self.turn

    async def read(self, after: int, turn: asyncio.Future[None]) -> AsyncGenerator[bytes, None]:
        """The events after number `after`, past and future; ends early for the next reader."""
        number = after
        while not turn.done():
            if number < self._kept.count:
                yield numbered(number + 1, self._kept[number])
                number += 1
            elif self.ended:
                return
            else:
                await self._advance(turn)

    async def close(self) -> None:
        """End the reader and abort the request. Idempotent."""
        self._end_reader()
        self.ended = True
        if self._step is not None:
            self._step.cancel()
            await asyncio.gather(self._step, return_exceptions=True)
        await self._events.aclose()
        await self._resources.aclose()

    def _end_reader(self) -> None:
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    async def _advance(self, turn: asyncio.Future[None]) -> None:
        """Wait for the next event, or for the end of the reader's turn."""
        if self._step is None:
            self._step = asyncio.create_task(self._next())
        step = self._step
        await asyncio.wait((step, turn), return_when=asyncio.FIRST_COMPLETED)
        if not step.done() or turn.done():
            return
        self._step = None
        event = step.result()
        if event is not None:
            self._kept.add(event)
            if not self._failed:
                return
        self.ended = True
        await self._resources.aclose()

    async def _next(self) -> bytes | None:
        """The next event; None after the last. An error becomes an event."""
        try:
            return await anext(self._events, None)
        except Exception as error:
            self._failed = True
            return error_event(from_engine(error))


class KeptStreams:
    """The kept streams of a server, by request id. All methods run on the event loop."""

    def __init__(self, drain: Drain, *, resume_s: float) -> None:
        self._drain = drain
        self._resume_s = resume_s
        self._streams: dict[str, KeptStream] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}

    async def add(
        self, request_id: str, events: AsyncGenerator[bytes, None], resources: AsyncExitStack
    ) -> None:
        """Keep the stream of a request that has begun."""
        await self.discard(request_id)  # a finished one with the same id
        self._streams[request_id] = KeptStream(events, resources)

    def is_running(self, request_id: str) -> bool:
        """Whether a stream with this id is kept and not at its end."""
        stream = self._streams.get(request_id)
        return stream is not None and not stream.ended

    def attach(
        self, request_id: str, *, after: int
    ) -> tuple[AsyncGenerator[bytes, None], AsyncExitStack]:
        """The events after number `after`; the stack is to be closed when the client has left.

        Raises:
            ApiError: 404 for an unknown request, 410 for events that are not kept any more.
        """
        stream = self._streams.get(request_id)
        if stream is None:
            raise ApiError(
                404,
                f"There is no resumable request {request_id[:80]!r}.",
                param="request_id",
                code="request_not_found",
            )
        stream.check(after)
        watch = self._watches.pop(request_id, None)
        if watch is not None:
            watch.cancel()
        turn = stream.next_turn()
        detached = AsyncExitStack()
        detached.callback(self._detach, request_id, stream, turn)
        return stream.read(after, turn), detached

    async def discard(self, request_id: str) -> None:
        """Close a stream, which aborts its request; unknown ids are ignored."""
        watch = self._watches.pop(request_id, None)
        if watch is not None:
            watch.cancel()
        stream = self._streams.pop(request_id, None)
        if stream is not None:
            await stream.close()

    def _detach(self, request_id: str, stream: KeptStream, turn: asyncio.Future[None]) -> None:
        if self._streams.get(request_id) is not stream or stream.turn is not turn:
            return  # discarded, or another reader came
        self._watches[request_id] = asyncio.create_task(self._expire(request_id))

    async def _expire(self, request_id: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._resume_s):
                await self._drain.wait_expired()
        self._watches.pop(request_id, None)
        await self.discard(request_id)
