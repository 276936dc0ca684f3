"""`Pipeline`: runs steps: schedule, execute, apply.

Hot path. Only the engine's thread calls it. It starts no thread and its clock is injected, so tests
drive it step by step. Invariant: the Python cost of a step does not grow with the batch. Loops here
and in the applier run only over requests that start or finish in this step or use a rare feature.
Nothing is sent to readers here; see `engine.batch.mailbox`.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.api.error_text import as_sentence
from engine.api.errors import ExecutorError
from engine.api.events import (
    BlocksSwappedIn,
    EventBus,
    PrefixHit,
    PrefixPinned,
    PrefixUnpinned,
    RequestForked,
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
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.observability.counters import EngineCounters, StepRecord
from engine.scheduler.schedule import Schedule
from engine.scheduler.scheduler import Scheduler
from engine.step.calibration import Calibration
from engine.step.finished import FinishedSequence
from engine.step.step_applier import AppliedStep, StepApplier
from engine.step.step_log import StepLog
from engine.step.token_writer import TokenWriter

_log = logging.getLogger(__name__)


class Pipeline:
    """Runs the requests of one loaded model.

    Attributes:
        executor: set when the weights are loaded, before the first step; until then requests can only
            be queued and aborted.
        steps: the last steps, and on request the plan of one.
        last_error: message and instant of the last failed step, or None.
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
        max_hold_s: float = 0.0,
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
            max_hold_s=max_hold_s,
        )
        self._applier = StepApplier(
            table,
            blocks,
            self.scheduler,
            counters=counters,
            events=events,
            clock=clock,
        )
        self.steps = StepLog(table, token_budget=token_budget)
        self.executor: Executor | None = None
        self._last: StepRecord | None = None
        self.last_error: tuple[str, float] | None = None
        self._finished: list[FinishedSequence] = []
        self._waiting = waiting
        self._counters = counters
        self._events = events
        self._clock = clock

    @property
    def writer(self) -> TokenWriter:
        """Writes sampled tokens into the rows."""
        return self._applier.writer

    @property
    def last_step(self) -> StepStats:
        """Statistics of the last executed step."""
        last = self._last
        if last is None:
            return StepStats()
        return StepStats(
            last.seconds,
            last.prefill_tokens,
            last.decode_tokens,
            last.rows,
            last.predicted_seconds,
        )

    @property
    def has_work(self) -> bool:
        """Whether any request is running or waiting."""
        return self.scheduler.has_work

    @property
    def idle_until(self) -> float | None:
        """Until when a step would run nothing because all requests are held; None if it may run some."""
        return self.scheduler.run_gate.idle_until(self._clock())

    def step(self) -> bool:
        """Run one step. Never raises: on a failure its requests finish with an error.

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
            if self.blocks.recurrent is not None:
                self.blocks.recurrent.cancel_step()
            running = self._sequences(self.scheduler.running)
            self._fail_step(f"Scheduling failed: {as_sentence(error)}", [*running, *self._waiting])
            return True
        plan, steady = schedule.plan, schedule.steady is not None
        if not steady:
            self._report_schedule(schedule, started)
        if plan is None:
            return bool(schedule.unplaceable)
        try:
            if not steady:
                self._copy_blocks(self.executor)
                if self.blocks.recurrent is not None:
                    self.blocks.recurrent.run_copies()
            if len(self.table.grammars):
                plan = self._mask(plan)
            if self.steps.plan_wanted:
                number = self._counters.steps + 1
                self.steps.describe(plan, number, started, self.scheduler.step_budget)
            result = self.executor.execute(plan)
            applied = self._applier.apply(schedule, plan, result)
            if self.blocks.recurrent is not None:
                self.blocks.recurrent.after_step(self.table, plan.rows)
            if self.blocks.windows is not None:
                self.blocks.windows.after_step(self.table, plan.rows)
            for sequence, finish in applied.finished:
                self.finish(sequence, finish)
            self._record_step(schedule, applied, len(plan.rows), started)
        except BaseException as error:  # a Rust panic is not an Exception
            _log.exception("A step failed.")
            if self.blocks.recurrent is not None:
                self.blocks.recurrent.cancel_step()
            at_fault = plan.rows
            if isinstance(error, ExecutorError) and error.entry is not None:
                # Nothing was computed: the next step schedules the other rows again.
                at_fault = at_fault[error.entry : error.entry + 1]
            placed = [self.table.sequences[row] for row in at_fault.tolist()]
            unfinished = [sequence for sequence in placed if sequence is not None]
            self._fail_step(f"The step failed: {as_sentence(error)}", unfinished)
        return True

    def calibrate(self, calibration: Calibration) -> None:
        """Run one calibration step; no request may be running."""
        if self.executor is None:
            raise AssertionError("a step before the weights were loaded")
        model = self.scheduler.work.model
        calibration.step(self.executor, self.table, self.blocks, model, self._clock)

    def _copy_blocks(self, executor: Executor) -> None:
        """Make the block copies of the schedule; their source blocks are released in any case."""
        copies = self.scheduler.copies
        before = copies.num_copied
        try:
            copies.execute(executor)
        finally:
            copies.release_sources()
        if copies.num_copied > before:
            self._counters.record_copies(copies.num_copied - before)

    def _mask(self, plan: StepPlan) -> StepPlan:
        """The plan with the token masks of rows that have a grammar."""
        rows, bits = self.table.grammars.masks(plan)
        return replace(plan, mask_rows=rows, mask_bits=bits)

    def abort(self, sequence: Sequence) -> None:
        """Finish a request in any state. Its blocks are free when this returns."""
        self.finish(sequence, ABORTED)

    def finish(self, sequence: Sequence, finish: Finish) -> None:
        """Finish a request: release its row and blocks or remove it from the queue, and count it.

        The finish is delivered to its reader later, through `take_finished`. Does nothing if the
        request has finished already.
        """
        if sequence.finished:
            return
        now = self._clock()
        if sequence.row != NO_ROW:
            self.scheduler.finish(sequence.row, now)
        else:
            self._waiting.remove(sequence)
        sequence.move_to(SequenceState.FINISHED)
        sequence.donor = None
        mailbox, reason = sequence.mailbox, finish.reason
        if sequence.detokenizer is not None and reason is not FinishReason.ERROR:
            mailbox.text.append(sequence.detokenizer.flush())
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
        """The requests that finished since the last call, for delivery to their readers."""
        finished, self._finished = self._finished, []
        return finished

    def _report_schedule(self, schedule: Schedule, now: float) -> None:
        """Finish unplaceable requests; count and publish preemptions and admissions."""
        self._report_dropped_pins()
        for sequence in schedule.unplaceable:
            self.finish(sequence, failed(self._too_large(sequence)))
        if schedule.preempted:
            self._counters.record_preemptions(len(schedule.preempted))
            for sequence in schedule.preempted:
                self._events.publish(
                    RequestPreempted(
                        now,
                        sequence.request_id,
                        len(sequence.tokens),
                        swapped=sequence.swap_on_eviction,
                    )
                )
        for sequence in schedule.admitted:
            if sequence.preemptions == 0 and self.blocks.prefixes is not None:
                swapped = sequence.swapped_tokens
                self._counters.record_lookup(
                    queried=sequence.num_prompt,
                    found=sequence.mailbox.cached_tokens - swapped,
                    swapped=None if self.blocks.tier is None else swapped,
                )
        if schedule.admitted and self._events.has_subscribers(RequestScheduled):
            for sequence in schedule.admitted:
                self._events.publish(
                    RequestScheduled(now, sequence.request_id, resumed=sequence.preemptions > 0)
                )
                self._report_start(sequence, now)

    def pin(self, pin_id: str, tokens: NDArray[np.int32]) -> None:
        """Pin the cached blocks of a prefix; see `engine.memory.pinned_prefixes`."""
        prefixes = self.blocks.prefixes
        covered = 0
        if prefixes is not None:
            found = prefixes.match(tokens, NO_CACHE_SALT)
            covered = self.blocks.pinned.pin(pin_id, found)
        self._report_dropped_pins()
        self._events.publish(PrefixPinned(self._clock(), pin_id, len(tokens), covered))

    def unpin(self, pin_id: str) -> None:
        """End a pin; unknown ids are ignored."""
        covered = self.blocks.pinned.unpin(pin_id)
        if covered:
            self._events.publish(PrefixUnpinned(self._clock(), pin_id, covered, dropped=False))

    def _report_dropped_pins(self) -> None:
        dropped = self.blocks.pinned.dropped
        for pin_id, covered in dropped:
            self._events.publish(PrefixUnpinned(self._clock(), pin_id, covered, dropped=True))
        dropped.clear()

    def _report_start(self, sequence: Sequence, now: float) -> None:
        """Publish what an admitted request need not compute."""
        start, request_id = sequence.start, sequence.request_id
        shared = start.blocks - (start.copied_block is not None)
        if start.tokens and start.parent_id is not None:
            self._events.publish(
                RequestForked(
                    now, request_id, start.parent_id, start.tokens, shared, start.copied_block
                )
            )
        elif start.tokens:
            self._events.publish(
                PrefixHit(now, request_id, start.tokens, shared, start.copied_block)
            )
        if sequence.swapped_tokens:
            blocks = sequence.swapped_tokens // self.blocks.block_size
            self._events.publish(BlocksSwappedIn(now, request_id, blocks))

    def _too_large(self, sequence: Sequence) -> str:
        blocks = self.blocks
        return (
            f"The request has {len(sequence.tokens)} tokens and the KV pool holds "
            f"{blocks.num_blocks * blocks.block_size}: give it more memory (--kv-cache) or "
            "shorten the request."
        )

    def _record_step(
        self, schedule: Schedule, applied: AppliedStep, rows: int, started: float
    ) -> None:
        """Count a step and update the step-time model.

        Args:
            schedule: the step's schedule.
            applied: its result.
            rows: its number of rows.
            started: the instant of scheduling.
        """
        now = self._clock()
        seconds, model = now - started, self.scheduler.work.model
        computing = seconds - self._settle_model_drafts(seconds, schedule, applied, rows)
        if schedule.admitted and any(one.swapped_tokens for one in schedule.admitted):
            # The time includes copying KV blocks in, which the model does not predict.
            predicted = model.predict(applied.load)
        else:
            predicted = model.observe(applied.load, computing)
        self._last = StepRecord(
            seconds,
            predicted,
            applied.prefill_tokens,
            applied.decode_tokens,
            applied.new_prompt_tokens,
            applied.generated,
            applied.first_tokens,
            applied.inter_token_latencies,
            0 if schedule.drafts is None else schedule.drafts.total,
            rows,
            self._counters.steps + 1,
            started,
        )
        self._counters.record_step(now, self._last)
        self.steps.append(self._last)

    def _settle_model_drafts(
        self, seconds: float, schedule: Schedule, applied: AppliedStep, rows: int
    ) -> float:
        """Report the step to the source of model drafts; the seconds that drafting took of it."""
        source = self.scheduler.model_drafts
        if source is None:
            return 0.0
        drafting = source.take_seconds()
        source.settle(
            seconds - drafting,
            drafting,
            applied.generated,
            rows,
            drafted=schedule.drafts is not None and schedule.drafts.by_model,
        )
        return drafting

    def _fail_step(self, message: str, sequences: list[Sequence]) -> None:
        """Finish the requests of a step that raised; the tokens of that step are lost."""
        now = self._clock()
        self.last_error = (message, now)
        for sequence in sequences:
            self.finish(sequence, failed(message))
        self._events.publish(StepFailed(now, message, len(sequences)))

    def _sequences(self, rows: NDArray[np.int32]) -> list[Sequence]:
        return [self.table.sequence(row) for row in rows.tolist()]
