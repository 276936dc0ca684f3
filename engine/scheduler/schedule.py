"""`Schedule`: the decision of one scheduling pass."""

from dataclasses import dataclass, field

from engine.batch.sequence import Sequence
from engine.batch.steady_decode import SteadyDecode
from engine.executors.base import StepPlan
from engine.scheduler.score_plan import ScoredRun
from engine.scheduler.speculation import Drafts


@dataclass(frozen=True, slots=True)
class Schedule:
    """One pass's decision.

    Attributes:
        plan: the step, or None when there is nothing to compute.
        admitted: sequences that got a row, for the first time or again.
        preempted: sequences that lost their row and are waiting again.
        unplaceable: sequences that need more blocks than the pool has; they hold nothing now.
        scored: rows of the plan that score prompt tokens.
        drafts: draft tokens in the plan, or None.
        steady: set when every row decodes one token behind its prompt, and there is nothing else.
    """

    plan: StepPlan | None
    admitted: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    unplaceable: list[Sequence] = field(default_factory=list)
    scored: list[ScoredRun] = field(default_factory=list)
    drafts: Drafts | None = None
    steady: SteadyDecode | None = None
