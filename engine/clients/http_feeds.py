"""Feeds: what `EnginePoller` fetches besides the snapshot, each only while something reads it.

A read never waits: it returns what the last poll brought and asks for the next one. `refresh` runs on the
connection's loop.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from engine.api.event_ring import EventBatch, EventRing
from engine.api.request_status import RequestStatus
from engine.api.snapshot import BlockMap
from engine.api.step_view import STEP_ENTRIES, PlannedStep, StepEntry
from engine.clients.block_wire import block_map
from engine.clients.event_wire import event_batch
from engine.clients.http_connection import HttpConnection
from engine.clients.http_wire import planned_step, request_statuses, step_entries

WANTED_S = 2.0
"""How long polling continues after the last read."""


class Feed(ABC):
    """One kind of state, kept up to date while it is read."""

    def __init__(
        self, connection: HttpConnection, clock: Callable[[], float], resume: Callable[[], None]
    ) -> None:
        """`resume` is called at each read: it continues polling that has paused."""
        self._connection = connection
        self._clock = clock
        self._resume = resume
        self._wanted_until = float("-inf")

    @property
    def wanted(self) -> bool:
        """Whether it was read in the last `WANTED_S`."""
        return self._clock() <= self._wanted_until

    def want(self) -> None:
        """Record a read. Any thread."""
        self._wanted_until = self._clock() + WANTED_S
        self._resume()

    @abstractmethod
    async def refresh(self, shift: float) -> None:
        """Fetch what is new; `shift` converts the server's instants to this process's clock.

        Raises:
            PravahaError: the error that the server reports, or that it does not answer.
        """

    def reset(self) -> None:  # noqa: B027 - most feeds have nothing to forget
        """The server went away: the next one to answer may be another engine."""


class BlockFeed(Feed):
    """The KV blocks. Epochs keep growing when the server is restarted."""

    _blocks: BlockMap | None = None  # with this side's epoch
    _server_blocks: BlockMap | None = None  # with the server's
    _epoch_base = 0

    def since(self, since: int) -> BlockMap | None:
        """See `EngineClient.blocks`. Any thread."""
        self.want()
        blocks = self._blocks
        return blocks if blocks is not None and blocks.epoch > since else None

    async def refresh(self, shift: float) -> None:
        """Fetch the blocks that changed."""
        known = self._server_blocks
        since = -1 if known is None else known.epoch
        data = await self._connection.get(self._connection.of_model(f"/blocks?since={since}"))
        if data is None:
            return
        blocks = self._server_blocks = block_map(data, known, shift=shift)
        self._blocks = replace(blocks, epoch=blocks.epoch + self._epoch_base)

    def reset(self) -> None:
        """The next server to answer may be another engine, whose epochs start at 0."""
        self._server_blocks = None
        if self._blocks is not None:
            self._epoch_base = self._blocks.epoch + 1


class EventFeed(Feed):
    """The engine's events, numbered anew on this side: the numbers grow when the server is restarted."""

    def __init__(
        self, connection: HttpConnection, clock: Callable[[], float], resume: Callable[[], None]
    ) -> None:
        super().__init__(connection, clock, resume)
        self._ring = EventRing()
        self._server_next = 0

    def since(self, since: int) -> EventBatch:
        """See `EngineClient.events`. Any thread."""
        self.want()
        return self._ring.since(since)

    async def refresh(self, shift: float) -> None:
        """Append the new events."""
        path = self._connection.of_model(f"/events?since={self._server_next}")
        data = await self._connection.get(path)
        batch = event_batch(data, shift=shift)
        if batch.missed and self._server_next:
            self._ring.skip(batch.missed)
        for event in batch.events:
            self._ring.append(event)
        self._server_next = batch.next

    def reset(self) -> None:
        """Begin with the oldest event of the next server."""
        self._server_next = 0


class RequestFeed(Feed):
    """The live requests."""

    _requests: tuple[RequestStatus, ...] = ()

    def read(self) -> tuple[RequestStatus, ...]:
        """See `EngineClient.request_table`. Any thread."""
        self.want()
        return self._requests

    async def refresh(self, shift: float) -> None:
        """Replace the table."""
        data = await self._connection.get(self._connection.of_model("/requests"))
        self._requests = request_statuses(data, shift=shift)

    def reset(self) -> None:
        """The requests of a server that went away are lost."""
        self._requests = ()


class StepFeed(Feed):
    """The last steps and the plan of one."""

    _steps: tuple[StepEntry, ...] = ()
    _plan: PlannedStep | None = None

    def since(self, number: int) -> tuple[StepEntry, ...]:
        """See `EngineClient.recent_steps`. Any thread."""
        self.want()
        return tuple(step for step in self._steps if step.number > number)

    def plan(self) -> PlannedStep | None:
        """See `EngineClient.planned_step`. Any thread."""
        self.want()
        return self._plan

    async def refresh(self, shift: float) -> None:
        """Append the new steps."""
        last = self._steps[-1].number if self._steps else 0
        data = await self._connection.get(self._connection.of_model(f"/steps?since={last}"))
        steps = (*self._steps, *step_entries(data, shift=shift))
        self._steps = steps[-STEP_ENTRIES:]
        self._plan = planned_step(data, shift=shift)

    def reset(self) -> None:
        """Numbers of the next server start at 1."""
        self._steps, self._plan = (), None
