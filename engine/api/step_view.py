"""`StepEntry` and `PlannedStep`: the last steps, and the plan of one, for a view of the scheduler."""

from dataclasses import dataclass
from enum import StrEnum

STEP_ENTRIES = 600
"""Steps that are kept: between one second and a minute of a busy engine."""


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One executed step.

    Attributes:
        number: counts the engine's steps from 1, as `EngineSnapshot.step` does.
        started: when it was scheduled, on the clock of `EngineSnapshot.time`.
        seconds: from scheduling to applied results.
        prefill_tokens: prefill tokens computed, recomputed ones included.
        decode_tokens: decode tokens computed, one per row that decodes.
        draft_tokens: draft tokens verified.
        rows: requests in the step.
    """

    number: int
    started: float
    seconds: float
    prefill_tokens: int
    decode_tokens: int
    draft_tokens: int
    rows: int


class RowPhase(StrEnum):
    """What a row does in a step: compute its prompt (again, after a preemption), or decode."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One request in a step's plan.

    Attributes:
        request_id: the request.
        phase: what it does.
        tokens: tokens computed in the step, draft tokens included.
        draft_tokens: draft tokens among them.
        computed_tokens: tokens that were computed before the step.
    """

    request_id: str
    phase: RowPhase
    tokens: int
    draft_tokens: int
    computed_tokens: int


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """The plan of one step.

    Attributes:
        number: of the step, as `StepEntry.number`.
        time: when it was scheduled, on the clock of `EngineSnapshot.time`.
        limit: maximum number of tokens in a step.
        budget: the batch former's limit for this step; None if it was not asked, because only decodes
            could run.
        rows: the requests, decodes first.
    """

    number: int
    time: float
    limit: int
    budget: int | None
    rows: tuple[PlannedRow, ...]
