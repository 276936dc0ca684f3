"""`StepApplier`: applies the result of a step to the row table.

Hot path: numpy expressions over the step's rows, and one native call for a steady decode step. Sampled
tokens are written by `TokenWriter`. The requests that finish are returned, not finished here.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.api.events import EventBus
from engine.api.step_costs import StepLoad
from engine.batch.finish import LENGTH_REACHED, failed
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence
from engine.batch.steady_decode import SteadyDecode
from engine.executors.base import StepPlan, StepResult
from engine.memory.block_manager import BlockManager
from engine.observability.counters import EngineCounters
from engine.scheduler.schedule import Schedule
from engine.scheduler.scheduler import Scheduler
from engine.scheduler.speculation import Drafts, record_accepted, release_unused
from engine.scheduler.step_time import step_load
from engine.step.token_writer import NO_SAMPLES, SequenceFinish, TokenWriter

_NOT_A_NUMBER = "The model's output for this request was not a number (NaN)."


class AppliedStep(NamedTuple):
    """The outcome of one step.

    Attributes:
        load: its work, as the step-time model measures it.
        prefill_tokens: prefill tokens computed, recomputed ones included.
        decode_tokens: decode tokens computed.
        new_prompt_tokens: prompt tokens computed for the first time.
        generated: tokens sampled.
        first_tokens: [N] float64, times to first token of requests that got their first.
        inter_token_latencies: [N] float64 as bytes, times since the previous token of the others.
        finished: requests that finish here; if one is listed twice, the first entry counts.
    """

    load: StepLoad
    prefill_tokens: int
    decode_tokens: int
    new_prompt_tokens: int
    generated: int
    first_tokens: NDArray[np.float64]
    inter_token_latencies: bytes
    finished: list[SequenceFinish]


class StepApplier:
    """Applies the results of steps. Engine's thread only.

    Attributes:
        writer: writes sampled tokens into the rows.
    """

    def __init__(
        self,
        table: RowTable,
        blocks: BlockManager,
        scheduler: Scheduler,
        *,
        counters: EngineCounters,
        events: EventBus,
        clock: Callable[[], float],
    ) -> None:
        """Apply results to `table`; index full blocks; report accepted drafts to the scheduler."""
        self.writer = TokenWriter(table, counters=counters, events=events)
        self._table = table
        self._blocks = blocks
        self._scheduler = scheduler
        self._counters = counters
        self._clock = clock

    def apply(self, schedule: Schedule, plan: StepPlan, result: StepResult) -> AppliedStep:
        """Write a step's tokens into the rows and index full blocks in the prefix cache.

        Args:
            schedule: the step's schedule.
            plan: the executed plan.
            result: its result.
        """
        applied = None if schedule.steady is None else self._apply_steady(schedule.steady, result)
        return applied or self._apply_any(schedule, plan, result)

    def _apply_steady(self, steady: SteadyDecode, result: StepResult) -> AppliedStep | None:
        """Apply a steady decode step; None, with nothing changed, if one of its rows failed."""
        advance = self.writer.advance(steady, result, self._clock())
        if advance is None:
            return None
        kv_tokens, inter_token_latencies, filled, finished = advance
        if filled is not None and self._blocks.prefixes is not None:
            self._blocks.prefixes.index_blocks(self._table, *filled)
        rows = len(steady.rows)
        return AppliedStep(
            StepLoad(0, rows, kv_tokens),
            0,
            rows,
            0,
            rows,
            NO_SAMPLES,
            inter_token_latencies,
            finished,
        )

    def _apply_any(self, schedule: Schedule, plan: StepPlan, result: StepResult) -> AppliedStep:
        """Apply a step of any kind."""
        table, batch, drafts = self._table, plan.rows, schedule.drafts
        num_scheduled_tokens = plan.query_start[1:] - plan.query_start[:-1]
        computed = table.num_computed[batch] + num_scheduled_tokens
        num_drafts, accepted = None, None
        if drafts is not None:
            num_drafts, accepted = drafts.counts, result.accepted
        load = step_load(num_scheduled_tokens, computed, len(plan.token_ids), num_drafts)
        if num_drafts is not None:
            num_scheduled_tokens = num_scheduled_tokens - num_drafts
            computed += result.accepted - num_drafts
        table.num_computed[batch] = computed
        if drafts is not None and self._blocks.recurrent is not None:
            rejected = result.accepted < drafts.counts
            table.num_computed[batch[rejected]] -= 1 + result.accepted[rejected]
            self._blocks.recurrent.roll_back(batch[rejected])
        prompt = table.num_prompt_tokens[batch]
        new_prompt = self._count_prompt(batch, computed, prompt)
        decode_tokens = int(np.count_nonzero((num_scheduled_tokens == 1) & (computed > prompt)))
        failed_sequences = self._record_scores(schedule, result)
        if drafts is not None:
            record_accepted(table, plan, result)
            release_unused(table, self._blocks, batch[drafts.batch])
        rows, valid_rows, prompt_only, chosen = batch, batch, batch[:0], None
        if np.count_nonzero(result.sampled < 0):
            # A row that needed a token and got none has failed; it keeps the draft tokens accepted
            # before that.
            got = result.sampled >= 0
            chosen = np.flatnonzero(got if accepted is None else got | (accepted > 0))
            rows = batch[chosen]
            broken = (result.sampled < 0) & (plan.needs_logits != 0)
            failed_sequences += map(table.sequence, batch[broken].tolist())
            valid_rows = batch[~broken]
            prompt_only = batch[computed >= table.max_total[batch]]  # max_tokens is 0
        before = None if accepted is None else table.num_tokens[rows]
        now = self._clock()
        finished, first_tokens, inter_token_latencies = self.writer.write(
            rows, result, chosen, accepted, now
        )
        if drafts is not None:
            self._settle_drafts(drafts, batch, result.accepted)
        generated = len(rows) if before is None else int((table.num_tokens[rows] - before).sum())
        if (
            self._blocks.prefixes is not None
        ):  # before rows finish, so that their blocks stay cached
            self._blocks.prefixes.index(table, valid_rows)
        finished += [(one, failed(_failure(one))) for one in failed_sequences]
        finished += [(table.sequence(row), LENGTH_REACHED) for row in prompt_only.tolist()]
        num_draft_tokens = 0 if drafts is None else drafts.total
        return AppliedStep(
            load=load,
            prefill_tokens=len(plan.token_ids) - decode_tokens - num_draft_tokens,
            decode_tokens=decode_tokens,
            new_prompt_tokens=new_prompt,
            generated=generated,
            first_tokens=first_tokens,
            inter_token_latencies=inter_token_latencies.tobytes(),
            finished=finished,
        )

    def _record_scores(self, schedule: Schedule, result: StepResult) -> list[Sequence]:
        """Store the scores of prompt tokens; returns the sequences with a NaN among them.

        Call it before tokens are published: a reader of the first token then finds all scores.
        """
        failed: list[Sequence] = []
        for run in schedule.scored:
            scores = run.sequence.mailbox.prompt_scores
            if scores is None:
                continue
            if not scores.record(result, run.part):
                failed.append(run.sequence)
            elif scores.complete:
                scores.scorer = None
                del self._table.scoring_rows[run.sequence.row]
        return failed

    def _settle_drafts(
        self, drafts: Drafts, batch: NDArray[np.int32], accepted: NDArray[np.int32]
    ) -> None:
        """Count a step's draft tokens and report their acceptance to the source of the drafts."""
        table = self._table
        # A stop string may lie before the last accepted token of a row.
        last = table.num_tokens[batch] - 1
        table.num_computed[batch] = np.minimum(table.num_computed[batch], last)
        self._scheduler.learn_drafts(batch, drafts, accepted)
        self._counters.record_drafts(
            drafts=len(drafts.batch),
            tokens=drafts.total,
            accepted=int(accepted.sum()),
            by_model=drafts.by_model,
        )

    def _count_prompt(
        self, batch: NDArray[np.int32], computed: NDArray[np.int32], prompt: NDArray[np.int32]
    ) -> int:
        """Number of prompt tokens computed for the first time; recomputed ones are not counted again."""
        counted = self._table.prompt_counted[batch]
        fresh = np.maximum(np.minimum(computed, prompt) - counted, 0)
        total = int(fresh.sum())
        if total:
            self._table.prompt_counted[batch] = counted + fresh
        return total


def _failure(sequence: Sequence) -> str:
    """The error message of a sequence that got no token."""
    return (sequence.matcher is not None and sequence.matcher.error) or _NOT_A_NUMBER
