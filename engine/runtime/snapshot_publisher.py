"""`SnapshotPublisher`: publishes engine snapshots, and block maps on request.

The engine's thread publishes; readers load one reference without a lock. While requests run and none
starts or finishes, a snapshot is replaced only after a period, because building one costs Python time
between two steps.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from engine.api.events import EventBus
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot, ModelInfo
from engine.memory.block_map import build_block_map
from engine.memory.release_times import ReleaseTimes
from engine.observability.counters import EngineCounters
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.live_requests import LiveRequests
from engine.runtime.pool_events import PoolEvents
from engine.runtime.recent_rates import RecentRates
from engine.step.pipeline import Pipeline

SNAPSHOT_PERIOD_S = 0.01
"""While requests run and none starts or finishes, a snapshot that was read is replaced after this."""
UNREAD_PERIOD_S = 0.1
"""As `SNAPSHOT_PERIOD_S`, for a snapshot that was not read."""


class SnapshotPublisher:
    """Publishes snapshots and block maps of one engine.

    Attributes:
        model_info: the loaded model, or None; written by the engine's thread.
        loading_progress: in [0, 1]; written by the engine's thread.
        scheduling: published until there is a pipeline; written by any thread.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        requests: LiveRequests,
        counters: EngineCounters,
        scheduling: Scheduling,
        clock: Callable[[], float],
        *,
        events: EventBus,
    ) -> None:
        """Publish the first snapshot, of an engine that has not started."""
        self._events = events
        self._pool_events = PoolEvents(events)
        self.model_info: ModelInfo | None = None
        self.loading_progress = 0.0
        self.scheduling = scheduling
        self._lifecycle = lifecycle
        self._requests = requests
        self._counters = counters
        self._rates = RecentRates(counters, clock)
        self._clock = clock
        self._block_map: BlockMap | None = None
        self._releases = ReleaseTimes()
        self._epoch = 0
        self._pool_changed = True
        self._pool_epoch = -1
        self._blocks_requested = False  # set by readers, cleared by the engine's thread
        self._snapshot_read = False  # likewise
        self._snapshot = self._take_snapshot(None)

    # ---- readers, any thread ----

    def snapshot(self) -> EngineSnapshot:
        """The last published snapshot, with current rates.

        A change of the model is shown from the call that asks for it on, also before the engine's thread
        has published it: a caller may wait for `changes_model` to end.
        """
        self._snapshot_read = True
        snapshot, upcoming = self._rates.apply(self._snapshot), self._lifecycle.next_model
        if upcoming is not None and snapshot.next_model is None:
            return replace(snapshot, state=self._lifecycle.state, next_model=upcoming)
        return snapshot

    def blocks(self, since: int) -> BlockMap | None:
        """The KV block map, or None if none newer than epoch `since` was published.

        The call requests a block map for the next step boundary; a busy engine publishes none without
        a request.
        """
        self._blocks_requested = True
        current = self._block_map
        return current if current is not None and current.epoch > since else None

    def last_used(self, block: int) -> float | None:
        """When a block was last released, as of the last block map; None for never, or while in use."""
        current = self._block_map
        if current is None or np.isnan(current.last_used[block]):
            return None
        return float(current.last_used[block])

    # ---- the engine's thread ----

    @property
    def published(self) -> EngineSnapshot:
        """The last published snapshot, without marking it as read."""
        return self._snapshot

    def forget_model(self) -> None:
        """Publish no model and no blocks from now on: the engine's model was unloaded."""
        self.model_info = None
        self.loading_progress = 0.0
        self._block_map = None
        self._releases = ReleaseTimes()  # the next pool counts from 0 again
        self._pool_events = PoolEvents(self._events)
        self._pool_changed, self._pool_epoch = True, -1

    def note_step(self) -> None:
        """Record that the pool may have changed since the last block map."""
        self._pool_changed = True

    def is_stale(self, pipeline: Pipeline) -> bool:
        """Whether a new snapshot is due: counts or state changed, the period passed, or it was requested."""
        shown, scheduler, error = self._snapshot, pipeline.scheduler, pipeline.last_error
        period = SNAPSHOT_PERIOD_S if self._snapshot_read else UNREAD_PERIOD_S
        return (
            self._blocks_requested
            or not scheduler.has_work
            or shown.running != scheduler.num_running
            or shown.waiting != self._requests.num_waiting
            or shown.state is not self._lifecycle.state
            or shown.scheduling is not scheduler.scheduling
            or self._clock() - shown.time >= period
            or (error is not None and error[1] != shown.last_error_time)
        )

    def publish(self, pipeline: Pipeline | None) -> bool:
        """Replace the snapshot, and the block map if it was requested.

        Returns:
            Whether the engine's state changed since the last snapshot.
        """
        before = self._snapshot.state
        self._snapshot_read = False  # cleared first, so that a read from here on is not lost
        self._snapshot = self._take_snapshot(pipeline)
        if pipeline is not None:
            pool_epoch = pipeline.blocks.epoch
            if pool_epoch != self._pool_epoch:  # as by a pin, between steps
                self._pool_epoch, self._pool_changed = pool_epoch, True
            self._releases.note(pool_epoch, self._snapshot.time)
            self._pool_events.observe(
                pipeline.blocks, self._snapshot.time, idle=not pipeline.has_work
            )
        # An idle engine has no next step boundary at which a request for the map would be seen.
        wanted = pipeline is not None and (self._blocks_requested or not pipeline.has_work)
        if pipeline is not None and wanted and self._pool_changed:
            self._blocks_requested = self._pool_changed = False
            self._epoch += 1
            self._block_map = build_block_map(
                self._epoch, pipeline.blocks, pipeline.table, self._releases
            )
        return self._snapshot.state is not before

    def _take_snapshot(self, pipeline: Pipeline | None) -> EngineSnapshot:
        totals, error = self._counters.totals(), self._lifecycle.error
        if pipeline is not None and pipeline.last_error is not None:
            error = pipeline.last_error
        of_pipeline: dict[str, Any] = {"scheduling": self.scheduling}
        if pipeline is not None:
            scheduler = pipeline.scheduler
            of_pipeline = {
                "running": scheduler.num_running,
                "blocks": pipeline.blocks.counts(),
                "swap": pipeline.blocks.swap_counts(),
                "states": pipeline.blocks.state_counts(),
                "windows": pipeline.blocks.window_counts(),
                "sessions": scheduler.session_counts(),
                "last_step": pipeline.last_step,
                "scheduling": scheduler.scheduling,
                "step_costs": scheduler.work.model.costs,
                "step_error": scheduler.work.model.error,
            }
        return EngineSnapshot(
            step=totals.steps,
            time=self._clock(),
            state=self._lifecycle.state,
            model=self.model_info,
            waiting=self._requests.num_waiting,
            totals=totals,
            loading_progress=self.loading_progress,
            next_model=self._lifecycle.next_model,
            last_error=None if error is None else error[0],
            last_error_time=None if error is None else error[1],
            **of_pipeline,
        )
