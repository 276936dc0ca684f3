"""`PlanBuilder`: builds a `StepPlan` from a batch of rows and the tokens scheduled for each.

Hot path: a fixed number of numpy expressions over rows and tokens.
"""

import numpy as np
from numpy.typing import NDArray

from engine.batch.rows import RowTable
from engine.executors.base import ImageRun, StepPlan
from engine.scheduler.score_plan import NO_SCORES, ScorePlan, plan_scores
from engine.scheduler.speculation import Drafts

_NO_DRAFT_TOKENS: NDArray[np.int32] = np.zeros(0, np.int32)
_NONE: NDArray[np.int32] = np.zeros(0, np.int32)


class PlanBuilder:
    """Builds plans over one row table. Engine's thread only."""

    def __init__(
        self,
        table: RowTable,
        *,
        state_slots: NDArray[np.int32] | None = None,
        window_blocks: NDArray[np.int32] | None = None,
    ) -> None:
        """Build plans; these are the arrays of every `StepPlan`, None for a model without them."""
        self._table = table
        self._state_slots = _NONE if state_slots is None else state_slots
        self._window_blocks = _NONE if window_blocks is None else window_blocks
        self._single_tokens = np.arange(table.max_rows + 1, dtype=np.int32)  # runs of one token

    def build(
        self,
        batch: NDArray[np.int32],
        num_scheduled_tokens: NDArray[np.int32],
        drafts: Drafts | None,
    ) -> tuple[StepPlan, ScorePlan]:
        """Build the ragged step in which each row computes its scheduled tokens and its drafts.

        Args:
            batch: [R] int32, rows.
            num_scheduled_tokens: [R] int32, tokens each row computes, drafts excluded.
            drafts: draft tokens, already written to the token table; None if there are none.
        """
        table = self._table
        count = len(batch)
        computed = table.num_computed[batch]
        end = computed + num_scheduled_tokens
        samples = (end == table.num_tokens[batch]) & (end < table.max_total[batch])
        num_draft_tokens, lengths = _NO_DRAFT_TOKENS, num_scheduled_tokens
        if drafts is not None:
            num_draft_tokens = drafts.counts
            lengths = num_scheduled_tokens + num_draft_tokens
        if np.count_nonzero(lengths == 1) == count:
            query_start = self._single_tokens[: count + 1]
            flat_rows, positions = batch, computed
        else:
            query_start = np.zeros(count + 1, np.int32)
            np.cumsum(lengths, out=query_start[1:])
            total = int(query_start[-1])
            flat_rows = np.repeat(batch, lengths)
            positions = np.arange(total, dtype=np.int32)
            positions += np.repeat(computed - query_start[:-1], lengths)
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
            penalty_start=table.penalty_start,
            sampling=table.sampling,
            bias_rows=table.bias_rows,
            bias_ids=table.bias_ids,
            bias_values=table.bias_values,
            logprob_rows=table.token_id_logprobs.rows,
            logprob_ids=table.token_id_logprobs.ids,
            breaker_heads=table.breakers.heads,
            breaker_tails=table.breakers.tails,
            num_draft_tokens=num_draft_tokens,
            score_tokens=scores.tokens,
            score_targets=scores.targets,
            score_tops=scores.tops,
            images=self._image_runs(batch, query_start, positions)
            if table.uncomputed_images
            else (),
            state_slots=self._state_slots,
            window_blocks=self._window_blocks,
        )
        return plan, scores

    def _image_runs(
        self,
        batch: NDArray[np.int32],
        query_start: NDArray[np.int32],
        positions: NDArray[np.int32],
    ) -> tuple[ImageRun, ...]:
        """The runs of image tokens in the step. Forgets the images of rows that are past them."""
        waiting, runs = self._table.uncomputed_images, []
        for index, row in enumerate(batch.tolist()):
            if (images := waiting.get(row)) is None:
                continue
            flat = query_start.item(index)
            first = positions.item(flat)
            last = first + query_start.item(index + 1) - flat
            if first >= images[-1].start + images[-1].tokens:
                del waiting[row]
                continue
            for placed in images:
                start = max(first, placed.start)
                count = min(last, placed.start + placed.tokens) - start
                if count > 0:
                    runs.append(
                        ImageRun(placed.image, flat + start - first, start - placed.start, count)
                    )
        return tuple(runs)

    def is_steady(self, plan: StepPlan, running: NDArray[np.int32]) -> bool:
        """Whether the plan decodes every running row, so that `SteadyDecode` can continue it.

        True when every row computes one token, samples the next one and is past its prompt, and none
        computes prompt logprobs.

        Args:
            plan: a plan from `build`.
            running: [R] int32, all rows that hold a request.
        """
        table, batch = self._table, plan.rows
        count = len(batch)
        if batch is not running or table.scoring_rows or len(plan.num_draft_tokens):
            return False
        if len(plan.token_ids) != count or np.count_nonzero(plan.needs_logits) != count:
            return False
        past_prompt = plan.positions >= table.num_prompt_tokens[batch]
        return bool(np.count_nonzero(past_prompt) == count)
