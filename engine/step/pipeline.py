"""`Pipeline`: runs one step after another: schedule, execute, apply.

Hot path. Only the engine's thread calls it; it starts no thread, and its clock is injected, so tests
drive it step by step. Invariant: the cost of a step in Python does not grow with the batch. The loops
below, and those that apply results, run over requests that start or finish in this step or use a rare
feature. Nothing is sent to readers here; see `engine.batch.mailbox`.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.api.error_text import as_sentence
from engine.api.events import (
    EventBus,
    RequestPreempted,
    RequestScheduled,
    StepFailed,
)
from engine.api.request import FinishReason
from engine.api.scheduling import Scheduling
from engine.api.snapshot import StepStats
from engine.batch.finish import ABORTED, Finish, failed
from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.sequence import NO_ROW, Sequence, SequenceState
from engine.executors.base import Executor, StepPlan
from engine.memory.block_manager import BlockManager
from engine.observability.counters import EngineCounters, StepRecord
from engine.scheduler.schedule import Schedule
from engine.scheduler.scheduler import Scheduler
from engine.step.calibration import Calibration
from engine.step.finished import FinishedSequence
from engine.step.step_applier import AppliedStep, StepApplier
from engine.step.token_writer import TokenWriter

_log = logging.getLogger(__name__)


class Pipeline:
    """Runs the requests of one loaded model.

    Attributes:
        executor: set when the weights are loaded, before the first step; until then requests may be
            queued and aborted.
        last_error: the sentence of the last failed step, with its instant, or None.
    """

    def __init__(
        self,
        table: RowTable,
        blocks: BlockManager,
        waiting: RequestQueue,
        *,
        token_budget: int,
        scheduling: Scheduling | None = None,
        speculation: bool = False,
        counters: EngineCounters,
        events: EventBus,
        clock: Callable[[], float],
    ) -> None:
        self.table = table
        self.blocks = blocks
        self.scheduler = Scheduler(
            table,
            blocks,
            waiting,
            token_budget=token_budget,
            scheduling=scheduling,
            speculation=speculation,
        )
        self._applier = StepApplier(
            table,
            blocks,
            self.scheduler,
            counters=counters,
            events=events,
            clock=clock,
        )
        self.executor: Executor | None = None
        self._last: StepRecord | None = None
        self._last_rows = 0
        self.last_error: tuple[str, float] | None = None
        self._finished: list[FinishedSequence] = []
        self._waiting = waiting
        self._counters = counters
        self._events = events
        self._clock = clock

    @property
    def writer(self) -> TokenWriter:
        """What writes tokens into the rows."""
        return self._applier.writer

    @property
    def last_step(self) -> StepStats:
        """Figures of the last executed step."""
        last = self._last
        if last is None:
            return StepStats()
        return StepStats(
            last.seconds,
            last.prefill_tokens,
            last.decode_tokens,
            self._last_rows,
            last.predicted_seconds,
        )

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return self.scheduler.has_work

    def step(self) -> bool:
        """Run one step. Never raises: a failure finishes the requests concerned with an error.

        Returns:
            Whether any request got tokens or finished, so that readers should be woken.
        """
        if self.executor is None:
            raise AssertionError("a step before the weights were loaded")
        started = self._clock()
        try:
            schedule = self.scheduler.schedule(started)
        except Exception as error:
            # A defect of the scheduler. Its state may be inconsistent, so every request is finished.
            _log.exception("Scheduling failed.")
            self.scheduler.copies.release_sources()
            running = self._sequences(self.scheduler.running)
            self._fail_step(f"Scheduling failed: {as_sentence(error)}", [*running, *self._waiting])
            return True
        plan, steady = schedule.plan, schedule.steady is not None
        if not steady:
            self._announce(schedule, started)
        if plan is None:
            return bool(schedule.unplaceable)
        try:
            if not steady:
                self._copy_blocks(self.executor)
            if len(self.table.grammars):
                plan = self._mask(plan)
            result = self.executor.execute(plan)
            applied = self._applier.apply(schedule, plan, result)
            for sequence, finish in applied.finished:
                self.finish(sequence, finish)
            self._account(schedule, applied, len(plan.rows), started)
        except BaseException as error:  # a panic in Rust is no Exception
            _log.exception("A step failed.")
            placed = [self.table.sequences[row] for row in plan.rows.tolist()]
            unfinished = [sequence for sequence in placed if sequence is not None]
            self._fail_step(f"The step failed: {as_sentence(error)}", unfinished)
        return True

    def calibrate(self, calibration: Calibration) -> None:
        """Run one calibrating step; nothing may be running."""
        if self.executor is None:
            raise AssertionError("a step before the weights were loaded")
        model = self.scheduler.work.model
        calibration.step(self.executor, self.table, self.blocks, model, self._clock)

    def _copy_blocks(self, executor: Executor) -> None:
        """Make the copies the schedule asks for; their sources are given back in any case."""
        copies = self.scheduler.copies
        before = copies.num_copied
        try:
            copies.execute(executor)
        finally:
            copies.release_sources()
        if copies.num_copied > before:
            self._counters.record_copies(copies.num_copied - before)

    def _mask(self, plan: StepPlan) -> StepPlan:
        """The plan with the token masks of rows that follow a grammar."""
        rows, bits = self.table.grammars.masks(plan)
        return replace(plan, mask_rows=rows, mask_bits=bits)

    def abort(self, sequence: Sequence) -> None:
        """Finish a request now, wherever it is. Its blocks are free when this returns."""
        self.finish(sequence, ABORTED)

    def finish(self, sequence: Sequence, finish: Finish) -> None:
        """Finish a request: release its row and blocks, or its place in the queue, and count it.

        Its reader is told by `deliver`, with what `take_finished` returns. A request that has
        finished already is left as it is.
        """
        if sequence.finished:
            return
        if sequence.row != NO_ROW:
            self.scheduler.release(sequence.row)
        else:
            self._waiting.remove(sequence)
        sequence.move_to(SequenceState.FINISHED)
        sequence.donor = None
        mailbox, reason = sequence.mailbox, finish.reason
        if sequence.detokenizer is not None and reason is not FinishReason.ERROR:
            mailbox.text.append(sequence.detokenizer.flush())
        now = self._clock()
        kept = mailbox.kept
        generates = sequence.max_total > sequence.num_prompt
        if generates and reason in (FinishReason.STOP, FinishReason.LENGTH):
            self.scheduler.work.note_output_length(len(kept.ids))
        self._counters.record_finish(
            now,
            reason,
            kept.timings,
            prompt_tokens=sequence.num_prompt,
            output_tokens=len(kept.ids),
            max_tokens=sequence.max_total - sequence.num_prompt,
        )
        self._finished.append(FinishedSequence(sequence, finish, now))

    @property
    def has_finished(self) -> bool:
        """Whether `take_finished` would return anything."""
        return bool(self._finished)

    def take_finished(self) -> list[FinishedSequence]:
        """The requests that finished since the last call; their readers do not know yet."""
        finished, self._finished = self._finished, []
        return finished

    def _announce(self, schedule: Schedule, now: float) -> None:
        """Finish, count and publish everything in a schedule beside the plan."""
        for sequence in schedule.unplaceable:
            self.finish(sequence, failed(self._too_large(sequence)))
        if schedule.preempted:
            self._counters.record_preemptions(len(schedule.preempted))
            for sequence in schedule.preempted:
                self._events.publish(
                    RequestPreempted(now, sequence.request_id, len(sequence.tokens))
                )
        for sequence in schedule.admitted:
            if sequence.preemptions == 0 and self.blocks.prefixes is not None:
                swapped = sequence.swapped_tokens
                self._counters.record_lookup(
                    queried=sequence.num_prompt,
                    found=sequence.mailbox.cached_tokens - swapped,
                    swapped=None if self.blocks.tier is None else swapped,
                )
        if schedule.admitted and self._events.wanted(RequestScheduled):
            for sequence in schedule.admitted:
                self._events.publish(
                    RequestScheduled(now, sequence.request_id, resumed=sequence.preemptions > 0)
                )

    def _too_large(self, sequence: Sequence) -> str:
        blocks = self.blocks
        return (
            f"The request has {len(sequence.tokens)} tokens and the KV pool holds "
            f"{blocks.num_blocks * blocks.block_size}: give it more memory (kv_cache_bytes) or "
            "ask for less."
        )

    def _account(self, schedule: Schedule, applied: AppliedStep, rows: int, started: float) -> None:
        """Count a step, and learn from how long it took.

        Args:
            schedule: what was decided.
            applied: what came of it.
            rows: how many rows it had.
            started: when it was scheduled.
        """
        now = self._clock()
        seconds, model = now - started, self.scheduler.work.model
        if schedule.admitted and any(one.swapped_tokens for one in schedule.admitted):
            # Copying KV blocks in is no part of what a step's tokens cost.
            predicted = model.predict(applied.load)
        else:
            predicted = model.observe(applied.load, seconds)
        self._last = StepRecord(
            seconds,
            predicted,
            applied.prefill_tokens,
            applied.decode_tokens,
            applied.new_prompt_tokens,
            applied.generated,
            applied.first_tokens,
            applied.inter_token_latencies,
        )
        self._last_rows = rows
        self._counters.record_step(now, self._last)

    def _fail_step(self, message: str, sequences: list[Sequence]) -> None:
        """End the requests of a step that raised; what the step wrote is lost."""
        now = self._clock()
        self.last_error = (message, now)
        for sequence in sequences:
            self.finish(sequence, failed(message))
        self._events.publish(StepFailed(now, message, len(sequences)))

    def _sequences(self, rows: NDArray[np.int32]) -> list[Sequence]:
        return [self.table.sequence(row) for row in rows.tolist()]
