"""`EnginePoller`: polls the server's snapshot and KV blocks for `HttpClient`.

Polling pauses `WANTED_S` after the last read. While the server does not answer, the snapshot has the state
`failed` and the reason in `last_error`, and polling continues with back-off, even if nothing reads: an idle
screen reads again when it is woken by the server's return.
"""

import asyncio
from collections.abc import Callable

from engine.api.errors import PravahaError
from engine.api.snapshot import BlockMap, EngineSnapshot, EngineState
from engine.clients.http_connection import HttpConnection
from engine.clients.http_wire import block_map, engine_snapshot

POLL_S = 0.2
WANTED_S = 2.0
"""How long polling continues after the last read."""
BACK_OFF_S = (0.5, 1.0, 2.0)


class EnginePoller:
    """Holds the newest snapshot, block map and tokenizer fingerprint of one server.

    Threads: `snapshot`, `blocks` and `fingerprint` may be read from any thread; coroutines run on the
    connection's loop.
    """

    def __init__(
        self,
        connection: HttpConnection,
        *,
        wake: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """`wake` is called when the engine's state changes."""
        self._connection = connection
        self._wake = wake
        self._clock = clock
        self.fingerprint: str | None = None
        self._snapshot = EngineSnapshot(
            step=0, time=clock(), state=EngineState.LOADING, loading_progress=0.0
        )
        self._blocks: BlockMap | None = None
        self._epoch_base = 0
        self._snapshot_wanted = clock() + WANTED_S
        self._blocks_wanted = float("-inf")
        self._wanted = asyncio.Event()

    @property
    def latest(self) -> EngineSnapshot:
        """The newest snapshot, without a request for newer ones."""
        return self._snapshot

    def snapshot(self) -> EngineSnapshot:
        """The newest snapshot: at most `POLL_S` and a round trip old if it is read continuously."""
        self._snapshot_wanted = self._clock() + WANTED_S
        self._resume()
        return self._snapshot

    def blocks(self, since: int) -> BlockMap | None:
        """The newest block map, or None if its epoch is at most `since`.

        Epochs keep growing when the server is restarted.
        """
        self._blocks_wanted = self._clock() + WANTED_S
        self._resume()
        blocks = self._blocks
        return blocks if blocks is not None and blocks.epoch > since else None

    async def run(self) -> None:
        """Poll until cancelled."""
        failures = 0
        while True:
            if not failures and not self._is_wanted():
                self._wanted.clear()
                if not self._is_wanted():  # check again: a read may have preceded `clear`
                    await self._wanted.wait()
            try:
                await self.refresh_snapshot()
                if self._clock() <= self._blocks_wanted:
                    await self._refresh_blocks()
                failures = 0
                await asyncio.sleep(POLL_S)
            except PravahaError as error:
                self._report_failure(error)
                await asyncio.sleep(BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)])
                failures += 1

    async def refresh_snapshot(self) -> None:
        """Fetch the snapshot and the tokenizer fingerprint now.

        Raises:
            PravahaError: the error that the server reports, or that it does not answer.
        """
        data = await self._connection.get("/snapshot")
        if "snapshot" not in data:
            raise self._connection.format_error()
        self.fingerprint = data.get("tokenizer_fingerprint")
        self._replace_snapshot(engine_snapshot(data["snapshot"], now=self._clock()))

    def _resume(self) -> None:
        if not self._wanted.is_set():
            self._connection.call_soon(self._wanted.set)

    def _is_wanted(self) -> bool:
        return self._clock() <= max(self._snapshot_wanted, self._blocks_wanted)

    async def _refresh_blocks(self) -> None:
        known = self._blocks
        since = -1 if known is None else known.epoch - self._epoch_base
        data = await self._connection.get(f"/blocks?since={max(since, -1)}")
        if data is not None:
            data["epoch"] += self._epoch_base
            self._blocks = block_map(data)

    def _report_failure(self, error: PravahaError) -> None:
        now = self._clock()
        if self._blocks is not None:
            # The next server to answer may be another engine, whose epochs start at 0.
            self._epoch_base = self._blocks.epoch + 1
        self._replace_snapshot(
            EngineSnapshot(
                step=self._snapshot.step,
                time=now,
                state=EngineState.FAILED,
                model=self._snapshot.model,
                last_error=f"{error} Trying again.",
                last_error_time=now,
            )
        )

    def _replace_snapshot(self, snapshot: EngineSnapshot) -> None:
        changed = snapshot.state is not self._snapshot.state
        self._snapshot = snapshot
        if changed:
            self._wake()
