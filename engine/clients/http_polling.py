"""`EnginePoller`: polls the server's snapshot and feeds (`http_feeds`) for `HttpClient`.

`WANTED_S` after the last read, polling pauses: only the snapshot is fetched, every `IDLE_POLL_S`. An idle
screen reads nothing, and is woken when a snapshot shows that the engine has worked for another client. Until
the tokenizer of the server's model has arrived, the snapshot has the state `loading` and no model: a front
end can do as little as without one. While the server does not answer, the snapshot has the state `failed` and
the reason in `last_error`, and polling continues with back-off, even if nothing reads.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from engine.api.errors import ModelNotFound, PravahaError
from engine.api.snapshot import EngineSnapshot, EngineState, ModelInfo
from engine.clients.http_connection import HttpConnection, ServerSilent
from engine.clients.http_feeds import WANTED_S, BlockFeed, EventFeed, Feed, RequestFeed, StepFeed
from engine.clients.http_wire import engine_snapshot
from engine.clients.remote_tokenizer import RemoteTokenizer

POLL_S = 0.2
IDLE_POLL_S = 2.0
"""Seconds between two snapshots while nothing reads."""
BACK_OFF_S = (0.5, 1.0, 2.0)


class EnginePoller:
    """Holds the newest snapshot, feeds and tokenizer of one server.

    Attributes:
        tokenizer: the tokenizer of the server's model.
        model: the server's model, also while its tokenizer is on its way.
        blocks: the KV blocks.
        events: the engine's events.
        requests: the live requests.
        steps: the last steps and the plan of one.

    Threads: `snapshot`, the feeds, `tokenizer` and `model` may be read from any thread; coroutines run on the
    connection's loop.
    """

    def __init__(
        self,
        connection: HttpConnection,
        *,
        wake: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """`wake` is called when the engine has worked or changed its state, and at the end of a pause."""
        self._connection = connection
        self._wake = wake
        self._clock = clock
        self.tokenizer = RemoteTokenizer(connection)
        self.model: ModelInfo | None = None
        self._heard_at = clock()  # when the server answered last
        self._snapshot = EngineSnapshot(
            step=0, time=clock(), state=EngineState.LOADING, loading_progress=0.0
        )
        self._snapshot_wanted = clock() + WANTED_S
        self._wanted = asyncio.Event()
        self._polling = asyncio.Lock()  # held while answers about a model are on their way
        self._shift = float("inf")  # from the server's clock to this process's
        self.blocks = BlockFeed(connection, clock, self._resume)
        self.events = EventFeed(connection, clock, self._resume)
        self.requests = RequestFeed(connection, clock, self._resume)
        self.steps = StepFeed(connection, clock, self._resume)
        self._feeds: tuple[Feed, ...] = (self.blocks, self.events, self.requests, self.steps)

    @property
    def shift(self) -> float:
        """What to add to the server's instants to get this process's; infinite before the first answer."""
        return self._shift

    def snapshot(self) -> EngineSnapshot:
        """The newest snapshot: at most `POLL_S` and a round trip old if it is read continuously."""
        self._snapshot_wanted = self._clock() + WANTED_S
        self._resume()
        return self._snapshot

    async def run(self) -> None:
        """Poll until cancelled."""
        failures = 0
        paused = False
        while True:
            try:
                if not failures and not self._is_wanted():
                    paused = True
                    await self._watch()
                async with self._polling:
                    await self._poll()
                failures = 0
                if paused:  # what was read at its end was from before it
                    paused = False
                    self._wake()
                await asyncio.sleep(POLL_S)
            except PravahaError as error:
                self._report_failure(error)
                await asyncio.sleep(BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)])
                failures += 1

    async def _poll(self) -> None:
        await self.refresh_snapshot()
        if self.model is not None and not self.tokenizer.belongs_to(self.model.name):
            await self.tokenizer.fetch(self.model.name, self._report_progress)
            await self.refresh_snapshot()
        wanted = [feed.refresh(self._shift) for feed in self._feeds if feed.wanted]
        await asyncio.gather(*wanted)

    async def choose(self, model: str) -> None:
        """Follow another model of the server from now on.

        Raises:
            PravahaError: as `refresh_snapshot`.
        """
        async with self._polling:  # no answer about the old model is on its way
            self._use(model)
            await self.refresh_snapshot()
        self._resume()

    async def refresh_snapshot(self) -> None:
        """Fetch the snapshot now.

        Raises:
            PravahaError: the error that the server reports, or that it does not answer.
        """
        try:
            data = await self._connection.get(self._connection.of_model("/snapshot"))
        except ModelNotFound:  # the server was started again without the model that was chosen
            if self._connection.model is None or self._connection.keeps_model:
                raise
            self._use(None)
            data = await self._connection.get("/snapshot")
        if "snapshot" not in data:
            raise self._connection.format_error()
        self._heard_at = now = self._clock()
        snapshot = engine_snapshot(data["snapshot"], now=now)
        self.model = snapshot.model
        if snapshot.model is not None and not self.tokenizer.belongs_to(snapshot.model.name):
            snapshot = _without_tokenizer(snapshot, 0.0)
        self._replace_snapshot(snapshot)
        # The least difference is the one with the least delay, so the nearest to that of the clocks.
        self._shift = min(self._shift, now - data.get("now", data["snapshot"]["time"]))

    def _use(self, model: str | None) -> None:
        self._connection.model = model
        for feed in self._feeds:
            feed.reset()

    async def _watch(self) -> None:
        """Poll the snapshot every `IDLE_POLL_S` until something reads."""
        while not self._is_wanted():
            self._wanted.clear()
            if self._is_wanted():  # a read may have preceded `clear`
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), IDLE_POLL_S)
            if not self._wanted.is_set():
                await self.refresh_snapshot()

    def _resume(self) -> None:
        if not self._wanted.is_set():
            self._connection.call_soon(self._wanted.set)

    def _is_wanted(self) -> bool:
        direct = self._clock() <= self._snapshot_wanted
        return direct or any(feed.wanted for feed in self._feeds)

    def _report_failure(self, error: PravahaError) -> None:
        now = self._clock()
        reason = str(error)
        if isinstance(error, ServerSilent):
            silence = now - self._heard_at
            reason = f"No word from the server at {self._connection.url} for {silence:.0f} s."
        self._shift = float("inf")
        for feed in self._feeds:
            feed.reset()
        if isinstance(error, ModelNotFound) and self._connection.keeps_model:
            # One of several models, which the server opens when it is to be loaded.
            self._replace_snapshot(
                EngineSnapshot(
                    step=self._snapshot.step,
                    time=now,
                    state=EngineState.UNLOADED,
                    on_demand=self._connection.model,
                )
            )
            return
        self._replace_snapshot(
            EngineSnapshot(
                step=self._snapshot.step,
                time=now,
                state=EngineState.FAILED,
                model=self._snapshot.model,
                last_error=f"{reason} Trying again.",
                last_error_time=now,
            )
        )

    def _report_progress(self, share: float) -> None:
        self._heard_at = self._clock()
        self._replace_snapshot(_without_tokenizer(self._snapshot, share))

    def _replace_snapshot(self, snapshot: EngineSnapshot) -> None:
        before, self._snapshot = self._snapshot, snapshot
        if (snapshot.state, snapshot.last_error, snapshot.step) != (
            before.state,
            before.last_error,
            before.step,
        ):
            self._wake()


def _without_tokenizer(snapshot: EngineSnapshot, share: float) -> EngineSnapshot:
    """What a front end sees of a server whose tokenizer is on its way."""
    return replace(snapshot, state=EngineState.LOADING, model=None, loading_progress=share)
