"""`Scheduler`: which tokens the next step computes.

There is no prefill mode and no decode mode. A row has `num_computed` tokens and `num_tokens` it
should have computed; each step gives it `min(budget left, difference)`. A decode is a difference of
one, a chunked prefill a larger one that takes several steps, a resumption after preemption a
prefill again.

One pass, under one token budget: running decodes, then unfinished prefills, then waiting requests,
each in the policy's order (`engine.scheduler.ranking`); the batch former says how large the budget is.
Hot: a pass over running rows is a fixed number of numpy expressions, and one over nothing but
decodes orders nobody. While the same rows just go on decoding, nothing is asked again: each of them
gets one token (`engine.batch.steady_decode`). Only admissions and preemptions loop, over the requests
admitted or preempted.

A request is admitted with what need not be computed (`engine.memory.reuse`): its `num_computed`
begins there. One whose prefix a running request is just computing waits for it, and others pass.

Why it always advances: the best running row is never preempted while another one is left, a row
that alone exceeds the pool is given up, and nothing is admitted in a step that preempted, so a
victim cannot take back at once what it gave.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepLoad
from engine.batch.prompt_scores import NO_SCORES, ScoredRun, ScorePlan, plan_scores
from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence
from engine.batch.steady_decode import SteadyDecode
from engine.executors.base import StepPlan
from engine.memory.block_copies import BlockCopies
from engine.memory.block_manager import BlockManager
from engine.memory.reuse import Reuse, ReuseFinder
from engine.scheduler.batch_former import make_batch_former
from engine.scheduler.policies import make_prioritiser
from engine.scheduler.ranking import Ranking
from engine.scheduler.speculation import Drafts, Speculation
from engine.scheduler.work_predictor import WorkPredictor

_WATERMARK_SHARE = 0.01
_NO_DRAFT_TOKENS: NDArray[np.int32] = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Schedule:
    """One pass's decision.

    Attributes:
        plan: the step, or None when there is nothing to compute.
        scored: rows of the plan that score prompt tokens.
        drafts: draft tokens in the plan, or None.
        admitted: sequences that got a row, for the first time or again.
        preempted: sequences that lost their row and are waiting again.
        unplaceable: sequences that need more blocks than the pool has; they hold nothing now.
        steady: set when every row decodes one token behind its prompt, and there is nothing else.
    """

    plan: StepPlan | None
    admitted: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    unplaceable: list[Sequence] = field(default_factory=list)
    scored: list[ScoredRun] = field(default_factory=list)
    drafts: Drafts | None = None
    steady: SteadyDecode | None = None


class Scheduler:
    """Decides steps. Owned by the engine's thread.

    Attributes:
        copies: block copies that must be made before the plan is executed.
        work: predicts how long things take; told of every step by whoever executes it.
        scheduling: the policy and the batch former in force.
        speculation: proposes draft tokens, or None; told of what became of them likewise.
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
    ) -> None:
        self._table = table
        self._blocks = blocks
        self._waiting = waiting
        self._token_budget = token_budget
        self.work = WorkPredictor(chunk=token_budget)
        self.scheduling = scheduling or Scheduling()
        self._ranking = Ranking(make_prioritiser(self.scheduling.policy, self.work))
        self._former = make_batch_former(self.scheduling, self.work, token_budget=token_budget)
        self.copies = BlockCopies(blocks)
        self.speculation = Speculation(table, token_budget=token_budget) if speculation else None
        self._reuse = ReuseFinder(table, blocks)
        self._running: NDArray[np.int32] = np.zeros(0, np.int32)  # rows, in the order last known
        # Runs of one token each: where they begin, and their lengths.
        self._single_tokens = np.arange(table.max_rows + 1, dtype=np.int32)
        self._ones = np.ones(table.max_rows, np.int32)
        self._steady: Schedule | None = None  # of rows that may just go on if they all still run
        self._stale = False  # whether `_running` must be put in order again

    @property
    def num_running(self) -> int:
        """Rows that hold a request."""
        return len(self._running)

    @property
    def running(self) -> NDArray[np.int32]:
        """[R] int32, rows that hold a request. Do not modify."""
        return self._running

    @property
    def has_work(self) -> bool:
        """Whether a pass would find something to do."""
        return bool(len(self._running) or len(self._waiting))

    def switch(self, scheduling: Scheduling) -> None:
        """Go on with another policy and batch former; nobody loses anything by it."""
        self.scheduling = scheduling
        self._ranking.prioritiser = make_prioritiser(scheduling.policy, self.work)
        self._former = make_batch_former(scheduling, self.work, token_budget=self._token_budget)
        self._stale = True

    def schedule(self, now: float) -> Schedule:
        """Choose the next step's tokens and take the blocks they need.

        Every row in the plan has blocks for every token up to its run's last.
        """
        schedule = self._go_on()
        if schedule is not None:
            return schedule
        self._stale |= not self._ranking.static
        preempted: list[Sequence] = []
        unplaceable: list[Sequence] = []
        while True:
            batch, grant, budget = self._share_budget(now)
            need = self._blocks_needed(batch, grant)
            if not np.count_nonzero(need) or int(need.sum()) <= self._blocks.num_free:
                break
            if len(self._running) == 1:
                unplaceable.append(self.release(int(self._running[0])))
            else:
                self._put_in_order(now)
                preempted.append(self._preempt(self._victim()))
        self._take_blocks(batch, need)
        admitted: list[Sequence] = []
        if budget > 0 and len(self._waiting) and not preempted and not unplaceable:
            rows, grants, admitted = self._admit(budget, now, unplaceable)
            if admitted:
                batch, grant = np.concatenate([batch, rows]), np.concatenate([grant, grants])
        plan, scores, drafts = None, NO_SCORES, None
        if len(batch):
            drafts = self._add_drafts(batch, grant)
            plan, scores = self._plan(batch, grant, drafts)
        if plan is None and self.has_work and not preempted and not unplaceable:
            raise AssertionError("there is work, and nothing of it can be done")  # or we would spin
        return Schedule(plan, admitted, preempted, unplaceable, scores.runs, drafts)

    def _go_on(self) -> Schedule | None:
        """One more token for each row, if all that has changed since the last pass is their length."""
        schedule, batch = self._steady, self._running
        if schedule is None or schedule.steady is None or schedule.steady.rows is not batch:
            return None
        if len(self._waiting) and self._table.num_free:
            return None
        if self.speculation is not None and self.speculation.finds(schedule.steady):
            drafts = self._add_drafts(batch, self._ones[: len(batch)])
            if drafts is not None:
                plan, scores = self._plan(batch, self._ones[: len(batch)], drafts)
                return Schedule(plan, scored=scores.runs, drafts=drafts)
        lacking = schedule.steady.look_up()
        if lacking is None or lacking > self._blocks.num_free:
            return None
        if lacking:
            schedule.steady.append_blocks(self._blocks.allocate(lacking))
        return schedule

    def _note_steady(self, plan: StepPlan, end: NDArray[np.int32]) -> None:
        """All rows of a plan decode: the next steps may be the same, if nobody comes or goes.

        Args:
            plan: a step in which every row computes one token and samples the next.
            end: [R] int32, tokens each row has computed after it.
        """
        table, batch = self._table, plan.rows
        if batch is not self._running or table.scoring_rows:
            return
        if np.count_nonzero(end > table.num_prompt_tokens[batch]) == len(batch):
            self._steady = Schedule(plan, steady=SteadyDecode(table, plan))

    def _add_drafts(self, batch: NDArray[np.int32], grant: NDArray[np.int32]) -> Drafts | None:
        """Draft tokens for the step, with the blocks they need; they are given back after it.

        Nobody is preempted for a guess: if the free blocks do not do, there are none.
        """
        if self.speculation is None:
            return None
        drafts = self.speculation.propose(batch, grant, self.work.model.costs)
        if drafts is None:
            return None
        need = self._blocks_needed(batch, grant + drafts.counts)
        if int(need.sum()) > self._blocks.num_free:
            return None
        self._take_blocks(batch, need)
        return drafts

    def release(self, row: int) -> Sequence:
        """Take a request out of its row and free its blocks, whatever it was doing."""
        sequence = self._table.sequence(row)
        self._blocks.release(self._table.release(row))
        self._running = self._running[self._running != row]
        return sequence

    def _victim(self) -> int:
        """The worst row that gives blocks back: what others hold, too, would not come free."""
        table, holders = self._table, self._blocks.refcounts()
        for row in self._running[:0:-1].tolist():
            if (holders[table.block_tables[row, : table.num_blocks[row]]] == 1).any():
                return int(row)
        return int(self._running[-1])

    def _preempt(self, row: int) -> Sequence:
        """Keep the token ids, free the blocks, wait at the front.

        Its blocks stay cached until somebody needs their room, and go to the swap tier then; unless
        computing them again is cheaper.
        """
        self._choose_swap_or_recompute(row)
        sequence = self.release(row)
        sequence.preemptions += 1
        self._waiting.requeue(sequence)
        return sequence

    def _choose_swap_or_recompute(self, row: int) -> None:
        """By measured price, for the row's own blocks: what others hold stays where it is."""
        table, tier = self._table, self._blocks.tier
        if tier is None:
            return
        indexed = table.block_tables[row, : table.num_indexed[row]]
        own = indexed[self._blocks.refcounts()[indexed] == 1]
        shared = len(indexed) - len(own)
        recompute = self.work.prefill_seconds(
            len(own) * table.block_size, cached=shared * table.block_size
        )
        if tier.is_cheaper(own, recompute):
            tier.victims_swapped += 1
        else:
            tier.victims_recomputed += 1
            tier.leave_out(own)

    def _put_in_order(self, now: float) -> None:
        """Order the running rows, if they are not in order already."""
        if self._stale:
            self._running = self._ranking.order(self._table, self._running, now)
            self._stale = False

    def _share_budget(self, now: float) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
        """Rows that get tokens, decodes first, how many, and what is left for admissions.

        Returns:
            Two [R] int32 arrays, and tokens.
        """
        table, batch = self._table, self._running
        lag = table.num_tokens[batch] - table.num_computed[batch]
        total = len(batch)
        if total <= self._token_budget and np.count_nonzero(lag == 1) == total:
            # Only decodes, room for all.
            if not (len(self._waiting) and table.num_free):
                return batch, lag, 0
            return batch, lag, self._step_budget(batch, lag) - total
        total = int(lag.sum())
        self._put_in_order(now)
        batch = self._running
        lag = table.num_tokens[batch] - table.num_computed[batch]
        by_phase = np.argsort(lag > 1, kind="stable")
        batch, lag = batch[by_phase], lag[by_phase]
        budget = self._step_budget(batch, lag)
        before = np.cumsum(lag, dtype=np.int32) - lag
        grant = np.clip(budget - before, 0, lag)
        served = grant > 0
        return batch[served], grant[served], budget - min(total, budget)

    def _step_budget(self, batch: NDArray[np.int32], lag: NDArray[np.int32]) -> int:
        """Tokens of this step, by the batch former; `batch` has the decodes first."""
        computed = self._table.num_computed[batch]
        count = int(np.count_nonzero(lag == 1))
        decodes = StepLoad(0, count, int(computed[:count].sum()) + count)
        context = int(computed[count]) if count < len(batch) else 0
        budget = self._former.budget(decodes, context)
        self.work.note_step(decodes, budget - count)
        return budget

    def _blocks_needed(
        self, batch: NDArray[np.int32], grant: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """[R] int32, blocks each row lacks for its tokens of this step."""
        table = self._table
        end = table.num_computed[batch] + grant
        return (end + (table.block_size - 1)) // table.block_size - table.num_blocks[batch]

    def _take_blocks(self, batch: NDArray[np.int32], need: NDArray[np.int32]) -> None:
        """Allocate `need` blocks a row and append them to the rows' tables."""
        if not np.count_nonzero(need):
            return
        total = int(need.sum())
        table = self._table
        held = table.num_blocks[batch]
        before = np.cumsum(need, dtype=np.int32) - need
        columns = np.arange(total, dtype=np.int32) + np.repeat(held - before, need)
        table.block_tables[np.repeat(batch, need), columns] = self._blocks.allocate(total)
        table.num_blocks[batch] = held + need

    def _admit(
        self, budget: int, now: float, unplaceable: list[Sequence]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], list[Sequence]]:
        """Give rows to waiting requests while budget, rows and blocks last.

        A request is admitted only if all of its known tokens fit above a watermark, beside the
        blocks that earlier admissions still have to take; its blocks are then taken chunk by chunk.

        Returns:
            [A] int32 rows, [A] int32 tokens granted to each, and the sequences.
        """
        table, waiting = self._table, self._waiting
        promised = self._promised_blocks()
        rows: list[int] = []
        grants: list[int] = []
        admitted: list[Sequence] = []
        deferred: list[Sequence] = []  # never more than could be admitted: bounds the pass
        while budget > 0 and len(waiting) and len(deferred) < table.num_free:
            index = self._ranking.pick(waiting, now)
            sequence = waiting.at(index)
            whole = self._blocks.blocks_for(len(sequence.tokens))
            if whole > self._blocks.num_blocks:
                unplaceable.append(waiting.pop(index))
                continue
            if self._reuse.waits(sequence):
                deferred.append(waiting.pop(index))
                continue
            room = self._blocks.num_free - promised - self._watermark()
            if sequence.room_needed > room:
                break  # without looking again: retrying the front of the line hashes nothing
            reuse = self._reuse.find(sequence, self._running)
            if reuse is None:
                deferred.append(waiting.pop(index))
                continue
            reuse = self._fit(reuse, whole, room, sequence)
            if reuse is None:
                break
            row = self._place(waiting.pop(index), reuse, now)
            self._ranking.admitted()
            grant = min(budget, len(sequence.tokens) - int(table.num_computed[row]))
            budget -= grant
            promised += whole - int(table.num_blocks[row])
            rows.append(row)
            grants.append(grant)
            admitted.append(sequence)
            if reuse.swapped.size:
                break  # copying takes its time: one a step
        for sequence in reversed(deferred):
            waiting.requeue(sequence)
        batch, grant_each = np.array(rows, np.int32), np.array(grants, np.int32)
        # For all of them at once: a dozen numpy calls for every one would lie between two steps.
        self._take_blocks(batch, self._blocks_needed(batch, grant_each))
        return batch, grant_each, admitted

    def _fit(self, reuse: Reuse, whole: int, room: int, sequence: Sequence) -> Reuse | None:
        """The reuse with which a sequence of `whole` blocks fits into `room`, or None.

        Blocks that nobody holds count as free until they are reused, so they are subtracted. Where
        there is no room to copy the last block, it is computed again.
        """
        size = self._table.block_size
        options = [reuse]
        if reuse.ends_inside(size):
            options.append(reuse.whole_blocks(size))
        for option in options:
            idle = self._blocks.count_available(option.blocks)
            needed = whole - len(option.blocks) + idle + option.ends_inside(size)
            if needed <= room:
                return option
            sequence.room_needed = needed
        return None

    def _place(self, sequence: Sequence, reuse: Reuse, now: float) -> int:
        """Give a sequence a row that begins with what is reused; references come first."""
        table, blocks = self._table, reuse.blocks
        self._blocks.retain(blocks)
        if reuse.ends_inside(table.block_size):
            blocks[-1] = self.copies.add(int(blocks[-1]))
        loaded = self._swap_in(reuse.swapped)
        sequence.swapped_tokens = len(loaded) * table.block_size
        computed = reuse.tokens + sequence.swapped_tokens
        if sequence.preemptions == 0:
            sequence.mailbox.cached_tokens = computed
        row = table.place(sequence, now)
        blocks = np.concatenate([blocks, loaded])
        table.begin_with(row, blocks, computed=computed, indexed=reuse.indexed)
        if loaded.size:
            self._index_swapped_in(row, reuse, loaded)
        sequence.donor = None
        sequence.room_needed = 0
        self._running = np.append(self._running, np.int32(row))
        self._stale = True
        return row

    def _swap_in(self, entries: NDArray[np.int64]) -> NDArray[np.int32]:
        """Fresh blocks with what the tier has; fewer than `entries` if some turn out damaged."""
        tier = self._blocks.tier
        if tier is None or not entries.size:
            return np.zeros(0, np.int32)
        blocks = self._blocks.allocate(len(entries))
        loaded = tier.load(entries, blocks)
        self._blocks.release(blocks[loaded:])
        return blocks[:loaded]

    def _index_swapped_in(self, row: int, reuse: Reuse, loaded: NDArray[np.int32]) -> None:
        """Give the trie what was swapped in, so that others find it in this very pass."""
        prefixes, tier = self._blocks.prefixes, self._blocks.tier
        if prefixes is None or tier is None:
            raise AssertionError("blocks were swapped in without an index")
        prefixes.index(self._table, np.array([row], np.int32))
        tier.note_loaded(reuse.swapped[: len(loaded)], loaded)

    def _promised_blocks(self) -> int:
        """Blocks that running rows still need for tokens they already have."""
        table, running = self._table, self._running
        whole = (table.num_tokens[running] + (table.block_size - 1)) // table.block_size
        return int(np.maximum(whole - table.num_blocks[running], 0).sum())

    def _watermark(self) -> int:
        """Blocks kept back at admission: one more for each running row, at least 1 % of the pool.

        Without it a full pool would admit a request, preempt it for the next decode, and so on. An
        empty engine keeps nothing back, or a request as large as the pool could never run.
        """
        running = len(self._running)
        if not running:
            return 0
        return max(running, int(self._blocks.num_blocks * _WATERMARK_SHARE))

    def _plan(
        self, batch: NDArray[np.int32], grant: NDArray[np.int32], drafts: Drafts | None
    ) -> tuple[StepPlan, ScorePlan]:
        """The ragged step in which row `batch[i]` computes its next `grant[i]` tokens, and drafts."""
        table = self._table
        count = len(batch)
        end = table.num_computed[batch] + grant
        samples = (end == table.num_tokens[batch]) & (end < table.max_total[batch])
        num_draft_tokens = _NO_DRAFT_TOKENS
        if drafts is not None:
            num_draft_tokens = drafts.counts
            grant = grant + num_draft_tokens
        computed = table.num_computed[batch]
        single = np.count_nonzero(grant == 1) == count
        if single:
            query_start = self._single_tokens[: count + 1]
            flat_rows, positions = batch, computed
        else:
            query_start = np.zeros(count + 1, np.int32)
            np.cumsum(grant, out=query_start[1:])
            total = int(query_start[-1])
            flat_rows = np.repeat(batch, grant)
            positions = np.arange(total, dtype=np.int32)
            positions += np.repeat(computed - query_start[:-1], grant)
        scores = NO_SCORES
        if table.scoring_rows:
            scores = plan_scores(
                table.scoring_rows, batch, query_start, positions, table.token_table
            )
        plan = StepPlan(
            rows=batch,
            query_start=query_start,
            token_ids=table.token_table[flat_rows, positions],
            positions=positions,
            needs_logits=samples.view(np.uint8),
            block_tables=table.block_tables,
            token_table=table.token_table,
            num_tokens=table.num_tokens,
            num_prompt_tokens=table.penalty_start,
            sampling=table.sampling,
            bias_rows=table.bias_rows,
            bias_ids=table.bias_ids,
            bias_values=table.bias_values,
            num_draft_tokens=num_draft_tokens,
            score_tokens=scores.tokens,
            score_targets=scores.targets,
            score_tops=scores.tops,
        )
        if single and drafts is None and np.count_nonzero(samples) == count:
            self._note_steady(plan, end)
        return plan, scores
