"""`Scheduler`: decides which tokens the next step computes.

There is no prefill mode and no decode mode. A row has `num_computed` tokens and `num_tokens` it
should have computed; the difference is its pending tokens, and each step schedules
`min(remaining budget, pending tokens)` of them. A decode has one pending token, a chunked prefill has
more than fit into one step, and a preempted request that resumes is a prefill again.

One pass, under one token budget: running decodes, then unfinished prefills, then waiting requests
(`engine.scheduler.admission`), each by service class and in the policy's order
(`engine.scheduler.ordering`). The batch former sets the budget. While a prompt of a higher service class
is pending, lower classes are held (`engine.scheduler.service_class_gate`).

Hot path: a pass over running rows is a fixed number of numpy expressions, and a pass over decodes
alone sorts nothing. While the same rows keep decoding, the last plan is updated in place
(`engine.batch.steady_decode`). Only admissions and preemptions loop, over the requests concerned.

Progress is guaranteed: the first row in the policy's order is never preempted while another one runs,
pins are given up when a request could not run otherwise, a row that alone exceeds the pool fails, and
nothing is admitted in a step that preempted, so a victim cannot reclaim its blocks at once.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.api.scheduling import Scheduling
from engine.api.service_class import SERVICE_CLASSES
from engine.api.snapshot import SessionCounts
from engine.api.step_costs import StepLoad
from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence, SequenceState
from engine.batch.steady_decode import SteadyDecode
from engine.memory.block_copies import BlockCopies
from engine.memory.block_manager import BlockManager
from engine.scheduler.admission import Admission
from engine.scheduler.batch_former import lower_class_chunk, make_batch_former, max_chunk
from engine.scheduler.model_drafts import ModelDrafts
from engine.scheduler.ordering import Ranking
from engine.scheduler.plan_builder import PlanBuilder
from engine.scheduler.policies import make_prioritiser
from engine.scheduler.preemption import Preemption
from engine.scheduler.prefill_share import SHORT_SHARE, share_prefill
from engine.scheduler.row_blocks import RowBlocks
from engine.scheduler.run_gate import RunGate
from engine.scheduler.running_rows import RunningRows
from engine.scheduler.schedule import Schedule
from engine.scheduler.service_class_gate import ServiceClassGate
from engine.scheduler.speculation import Drafts, Speculation
from engine.scheduler.work_predictor import WorkPredictor


class Scheduler:
    """Decides steps. Owned by the engine's thread.

    Attributes:
        work: predicts durations; the step pipeline reports every measured step to its model.
        scheduling: the current policy and batch former.
        speculation: proposes draft tokens by prompt lookup; None if speculation is off.
        model_drafts: proposes draft tokens of a draft model where lookup has none; None without one.
        step_budget: the batch former's token budget of the last pass that was not a steady decode; None
            if it was not asked.
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
    ) -> None:
        self._table = table
        self._blocks = blocks
        self._waiting = waiting
        self._token_budget = token_budget
        self.work = WorkPredictor(chunk=token_budget)
        self.scheduling = scheduling or Scheduling()
        self.speculation = Speculation(table, token_budget=token_budget) if speculation else None
        self.model_drafts: ModelDrafts | None = None
        self._ranking = Ranking(make_prioritiser(self.scheduling.policy, self.work))
        self._former = make_batch_former(self.scheduling, self.work, token_budget=token_budget)
        self._running = RunningRows(table, self._ranking)
        self._row_blocks = RowBlocks(table, blocks)
        self._preemption = Preemption(table, blocks, self.work)
        self._gate = ServiceClassGate(table, self._running, waiting)
        self.run_gate = RunGate(
            table, blocks, waiting, self._running, self.work, max_hold_s=max_hold_s
        )
        if blocks.sessions is not None:
            blocks.sessions.recompute_seconds = self._recompute_seconds
        if blocks.recurrent is not None:
            blocks.recurrent.checkpoints.recompute_seconds = self._recompute_seconds
        if blocks.windows is not None:
            blocks.windows.checkpoints.recompute_seconds = self._recompute_seconds
        self.admission = Admission(table, blocks, waiting, self._running, self._ranking)
        self._plans = PlanBuilder(
            table,
            state_slots=None if blocks.recurrent is None else blocks.recurrent.slots,
            window_blocks=None if blocks.windows is None else blocks.windows.of_block,
        )
        self._ones = np.ones(table.max_rows, np.int32)
        self.step_budget: int | None = None
        self._steady: Schedule | None = None  # continued while the same rows run

    @property
    def num_running(self) -> int:
        """Rows that hold a request."""
        return len(self._running)

    @property
    def running(self) -> NDArray[np.int32]:
        """[R] int32, rows that hold a request. Do not modify."""
        return self._running.rows

    @property
    def has_work(self) -> bool:
        """Whether any request is running or waiting."""
        return bool(len(self._running) or len(self._waiting))

    @property
    def copies(self) -> BlockCopies:
        """Block copies that must be made before the plan is executed."""
        return self.admission.copies

    def session_counts(self) -> SessionCounts:
        """What is known of the sessions, as of the last pass."""
        if self._blocks.sessions is None:
            return SessionCounts()
        return replace(self._blocks.sessions.counts(), held_requests=self.run_gate.num_held)

    def switch(self, scheduling: Scheduling) -> None:
        """Change the policy and the batch former; no request loses its row."""
        self.scheduling = scheduling
        self._ranking.prioritiser = make_prioritiser(scheduling.policy, self.work)
        self._former = make_batch_former(scheduling, self.work, token_budget=self._token_budget)
        self._running.invalidate_order()

    def schedule(self, now: float) -> Schedule:
        """Choose the tokens of the next step and allocate the blocks they need.

        Every row in the plan has blocks for all tokens up to the last one of its run.

        Args:
            now: instant of the engine's clock, monotonic seconds.
        """
        if self._blocks.sessions is not None:
            self._blocks.sessions.tick(now)
        schedule = self._continue_steady()
        if schedule is not None:
            return schedule
        self.run_gate.update(now)
        if not self._ranking.static:
            self._running.invalidate_order()
        return self._form_step(now, self._gate.lowest_served())

    def _form_step(self, now: float, lowest_served: int | None) -> Schedule:
        """Form a step of the service classes up to rank `lowest_served`; of all, if it is None."""
        preempted: list[Sequence] = []
        unplaceable: list[Sequence] = []
        while True:
            batch, num_scheduled_tokens, budget, shortest_first = self._share_budget(
                now, lowest_served
            )
            missing = self._row_blocks.missing(batch, num_scheduled_tokens)
            if not np.count_nonzero(missing) or int(missing.sum()) <= self._blocks.num_growable:
                break
            if len(self._running) == 1 and self._blocks.pinned.drop_oldest():
                continue
            if len(self._running) == 1:
                unplaceable.append(self.finish(int(self._running.rows[0]), now))
            else:
                self._running.sort(now)
                preempted.append(self.preempt(self._preemption.choose_victim(self._running.rows)))
        self._row_blocks.allocate(batch, missing)
        admitted: list[Sequence] = []
        if budget > 0 and len(self._waiting) and not preempted and not unplaceable:
            new = self.admission.admit(
                budget, now, shortest_first=shortest_first, lowest_served=lowest_served
            )
            admitted, unplaceable = new.sequences, new.unplaceable
            if admitted:
                batch = np.concatenate([batch, new.rows])
                num_scheduled_tokens = np.concatenate(
                    [num_scheduled_tokens, new.num_scheduled_tokens]
                )
        changed = admitted or preempted or unplaceable
        if lowest_served is not None and not changed and not self._computes_prompt(batch):
            # The prompt for which lower classes are held cannot be computed now: there are no blocks
            # for it, or it waits for the prefix that another request computes.
            self._gate.open()
            return self._form_step(now, None)
        if len(batch):
            drafts = self._add_drafts(batch, num_scheduled_tokens)
            plan, scores = self._plans.build(batch, num_scheduled_tokens, drafts)
            if self._plans.is_steady(plan, self._running.rows):
                self._steady = Schedule(plan, steady=SteadyDecode(self._table, plan))
            return Schedule(plan, admitted, preempted, unplaceable, scores.runs, drafts)
        if self.has_work and not preempted and not unplaceable:
            if self.run_gate.holds_all:
                return Schedule(None)
            if self._blocks.pinned.drop_oldest():
                return self._form_step(now, lowest_served)
            raise AssertionError("requests are running or waiting, but none could be scheduled")
        return Schedule(None, admitted, preempted, unplaceable)

    def preempt(self, row: int) -> Sequence:
        """Release the row and queue its request again, with its token ids.

        The blocks are released; full ones stay cached until an allocation evicts them.
        """
        if self._blocks.recurrent is not None:
            self._blocks.recurrent.keep_active(self._table, row)
        if self._blocks.windows is not None:
            self._blocks.windows.keep_end(self._table, row)
        swap = self._preemption.choose_swap_or_recompute(row)
        sequence = self._release(row)
        sequence.swap_on_eviction = swap
        sequence.move_to(SequenceState.PREEMPTED)
        sequence.preemptions += 1
        self._waiting.requeue(sequence)
        return sequence

    def finish(self, row: int, now: float) -> Sequence:
        """Release the row of a request that has finished; its session waits from now on."""
        return self._release(row, finished_at=now)

    def _recompute_seconds(self, tokens: int, cached: int = 0) -> float | None:
        return self.work.prefill_seconds(tokens, cached=cached)

    def _release(self, row: int, *, finished_at: float | None = None) -> Sequence:
        """Remove a request from its row and release its blocks.

        The caller moves the sequence to its next state.
        """
        sequence = self._table.sequence(row)
        if self._blocks.windows is not None:
            self._blocks.windows.release(self._table, row)
        self._blocks.release(self._table.release(row))
        if self._blocks.recurrent is not None:
            self._blocks.recurrent.release(row)
        self._running.remove(row)
        if self._blocks.sessions is not None:
            self._blocks.sessions.stopped(sequence, finished_at=finished_at)
        return sequence

    def _continue_steady(self) -> Schedule | None:
        """The last plan advanced by one token per row, if the same rows keep decoding; else None."""
        schedule, batch = self._steady, self._running.rows
        if schedule is None or schedule.steady is None or schedule.steady.rows is not batch:
            return None
        if len(self._waiting) and self._table.num_free:
            return None
        if self._may_draft(schedule.steady):
            ones = self._ones[: len(batch)]
            drafts = self._add_drafts(batch, ones)
            if drafts is not None:
                plan, scores = self._plans.build(batch, ones, drafts)
                return Schedule(plan, scored=scores.runs, drafts=drafts)
        missing = schedule.steady.look_up()
        if missing is None or missing > self._blocks.num_growable:
            return None
        if missing:
            schedule.steady.append_blocks(self._blocks.allocate(missing))
        return schedule

    def learn_drafts(
        self, batch: NDArray[np.int32], drafts: Drafts, accepted: NDArray[np.int32]
    ) -> None:
        """Report to the source of a step's drafts how many were accepted.

        Args:
            batch: [R] int32, the step's rows.
            drafts: its drafts.
            accepted: [R] int32, draft tokens accepted of each row.
        """
        if drafts.by_model:
            if self.model_drafts is not None:
                self.model_drafts.learn(drafts, accepted)
        elif self.speculation is not None:
            self.speculation.learn(batch, drafts, accepted)

    def _may_draft(self, steady: SteadyDecode) -> bool:
        """Whether any source may have drafts for these rows."""
        if self.speculation is not None and self.speculation.may_propose(steady):
            return True
        return self.model_drafts is not None and self.model_drafts.may_propose(len(steady.rows))

    def _add_drafts(
        self, batch: NDArray[np.int32], num_scheduled_tokens: NDArray[np.int32]
    ) -> Drafts | None:
        """Propose draft tokens for the step and allocate the blocks they need.

        No row is preempted for draft tokens: without enough free blocks there are none. Blocks of
        rejected draft tokens are released after the step (`release_unused`).
        """
        costs, drafts = self.work.model.costs, None
        if self.speculation is not None:
            drafts = self.speculation.propose(batch, num_scheduled_tokens, costs)
        if drafts is None and self.model_drafts is not None:
            drafts = self.model_drafts.propose(batch, num_scheduled_tokens, costs)
        states = self._blocks.recurrent
        if drafts is not None and states is not None:
            drafts = drafts.cut(states.draft_room(self._table.num_computed[batch]))
        if drafts is None:
            return None
        missing = self._row_blocks.missing(batch, num_scheduled_tokens + drafts.counts)
        if int(missing.sum()) > self._blocks.num_growable:
            return None
        if states is not None and not states.save_before_drafts(batch[drafts.batch]):
            return None
        self._row_blocks.allocate(batch, missing)
        return drafts

    def _computes_prompt(self, batch: NDArray[np.int32]) -> bool:
        """Whether any of these rows has no first token yet, or several pending tokens."""
        table = self._table
        prompts = np.isnan(table.first_token_at[batch])
        prompts |= table.num_tokens[batch] - table.num_computed[batch] > 1
        return bool(prompts.any())

    def _served(self, lowest_served: int | None) -> NDArray[np.int32]:
        """[R] int32, the running rows of the served classes, in the order last computed."""
        rows = self._running.rows
        if lowest_served is None:
            return rows
        return rows[self._table.service_class[rows] <= lowest_served]

    def _share_budget(
        self, now: float, lowest_served: int | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], int, bool]:
        """Share the step's token budget among running rows of the served classes, decodes first.

        Returns:
            [R] int32 rows, [R] int32 tokens scheduled for each, the budget left for admissions, and
            whether it is reserved for the shortest waiting requests.
        """
        table, batch = self._table, self._served(lowest_served)
        self.step_budget = None
        num_pending_tokens = self._num_pending_tokens(batch)
        total = len(batch)
        if total <= self._token_budget and np.count_nonzero(num_pending_tokens == 1) == total:
            # Only decodes, and the budget covers all of them.
            if not (len(self._waiting) and table.num_free):
                return batch, num_pending_tokens, 0, False
            left = self._step_budget(batch, num_pending_tokens) - total
            return batch, num_pending_tokens, left, False
        total = int(num_pending_tokens.sum())
        self._running.sort(now)
        batch = self._served(lowest_served)
        num_pending_tokens = self._num_pending_tokens(batch)
        by_phase = np.argsort(num_pending_tokens > 1, kind="stable")
        batch, num_pending_tokens = batch[by_phase], num_pending_tokens[by_phase]
        budget = self._step_budget(batch, num_pending_tokens)
        shortest_first = False
        num_decode_rows = int(np.count_nonzero(num_pending_tokens == 1))
        prefills, prefill_budget = num_pending_tokens[num_decode_rows:], budget - num_decode_rows
        if total <= budget or prefill_budget <= 0:
            num_scheduled_tokens = share_prefill(num_pending_tokens, budget, reserved=0)
            for_admission = budget - min(total, budget)
        else:
            reserved = int(prefill_budget * SHORT_SHARE)
            shortest = int(prefills[1:].min()) if len(prefills) > 1 else int(prefills[0])
            shortest_first = self.admission.may_admit_shorter_than(
                shortest, lowest_served=lowest_served
            )
            for_admission = reserved if shortest_first else 0
            num_scheduled_tokens = np.concatenate(
                [
                    num_pending_tokens[:num_decode_rows],
                    share_prefill(
                        prefills, prefill_budget - for_admission, reserved - for_admission
                    ),
                ]
            )
        served = num_scheduled_tokens > 0
        return batch[served], num_scheduled_tokens[served], for_admission, shortest_first

    def _num_pending_tokens(self, batch: NDArray[np.int32]) -> NDArray[np.int32]:
        """[R] int32, pending tokens of each row; up to its next border for a model with recurrent layers."""
        computed = self._table.num_computed[batch]
        pending: NDArray[np.int32] = self._table.num_tokens[batch] - computed
        states = self._blocks.recurrent
        return pending if states is None else np.minimum(pending, states.limit(batch, computed))

    def _step_budget(self, batch: NDArray[np.int32], num_pending_tokens: NDArray[np.int32]) -> int:
        """The batch former's budget for this step; `batch` must have the decodes first."""
        computed = self._table.num_computed[batch]
        num_decode_rows = int(np.count_nonzero(num_pending_tokens == 1))
        kv_tokens = int(computed[:num_decode_rows].sum()) + num_decode_rows
        decode_load = StepLoad(0, num_decode_rows, kv_tokens)
        context = int(computed[num_decode_rows]) if num_decode_rows < len(batch) else 0
        budget = self._former.budget(decode_load, context)
        costs = self.work.model.costs
        if costs is not None:
            budget = min(budget, num_decode_rows + max_chunk(costs, decode_load, context))
        if self._first_prefill_class(batch[num_decode_rows:]) > 0:
            chunk = lower_class_chunk(costs, decode_load, context)
            budget = min(budget, num_decode_rows + chunk)
        self.work.note_step(decode_load, budget - num_decode_rows)
        self.step_budget = budget
        return budget

    def _first_prefill_class(self, prefills: NDArray[np.int32]) -> int:
        """Rank of the highest service class that may prefill in this step.

        Args:
            prefills: [P] int32, running rows that prefill, in order.
        """
        classes = self._table.service_class[prefills[:1]]
        if not len(classes):
            classes = self._waiting.columns().service_class
        return int(classes.min(initial=len(SERVICE_CLASSES) - 1)) if len(classes) else 0
