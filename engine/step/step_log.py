"""`StepLog`: the last steps, and on request the plan of one.

Hot path: a step appends its record, which exists anyway, to a deque and reads one flag. A plan is described
only after a reader asked for one, which costs microseconds per row.
"""

from collections import deque

import numpy as np

from engine.api.step_view import STEP_ENTRIES, PlannedRow, PlannedStep, RowPhase, StepEntry
from engine.batch.rows import RowTable
from engine.executors.base import StepPlan
from engine.observability.counters import StepRecord


class StepLog:
    """Written by the engine's thread, read by any.

    Attributes:
        append: adds the record of an executed step; the engine's thread.
        plan_wanted: set by readers, cleared by the engine's thread.
    """

    def __init__(self, table: RowTable, *, token_budget: int) -> None:
        """Describe plans over `table` with at most `token_budget` tokens."""
        self.plan_wanted = False
        self._table = table
        self._token_budget = token_budget
        self._records: deque[StepRecord] = deque(maxlen=STEP_ENTRIES)
        self.append = self._records.append
        self._plan: PlannedStep | None = None

    # ---- the engine's thread ----

    def describe(self, plan: StepPlan, number: int, started: float, budget: int | None) -> None:
        """Describe the plan of the step that is about to be executed.

        Args:
            plan: the plan.
            number: of the step, counted from 1.
            started: when it was scheduled.
            budget: the batch former's token budget, or None.
        """
        self.plan_wanted = False
        table, rows = self._table, plan.rows
        tokens = np.diff(plan.query_start)
        drafts = plan.num_draft_tokens if len(plan.num_draft_tokens) else np.zeros_like(tokens)
        computed = table.num_computed[rows]
        prefill = (tokens - drafts > 1) | (computed < table.num_prompt_tokens[rows])
        columns = zip(
            rows.tolist(),
            prefill.tolist(),
            tokens.tolist(),
            drafts.tolist(),
            computed.tolist(),
            strict=True,
        )
        self._plan = PlannedStep(
            number,
            started,
            self._token_budget,
            budget,
            tuple(
                PlannedRow(
                    table.sequence(row).request_id,
                    RowPhase.PREFILL if is_prefill else RowPhase.DECODE,
                    count,
                    num_drafts,
                    before,
                )
                for row, is_prefill, count, num_drafts, before in columns
            ),
        )

    # ---- any thread ----

    def since(self, number: int) -> tuple[StepEntry, ...]:
        """The kept steps after step `number`, oldest first."""
        # One call in C, during which no other thread runs: the engine's thread may append.
        records = list(self._records)
        return tuple(_entry(record) for record in records if record.number > number)

    def plan(self) -> PlannedStep | None:
        """The plan described last, and a request for that of the next step."""
        self.plan_wanted = True
        return self._plan


def _entry(record: StepRecord) -> StepEntry:
    return StepEntry(
        record.number,
        record.started,
        record.seconds,
        record.prefill_tokens,
        record.decode_tokens,
        record.draft_tokens,
        record.rows,
    )
