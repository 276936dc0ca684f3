"""`Schedule`: the decision of one scheduling pass."""

from dataclasses import dataclass, field

from engine.batch.sequence import Sequence
from engine.batch.steady_decode import SteadyDecode
from engine.executors.base import StepPlan
from engine.scheduler.score_plan import ScoredRun
from engine.scheduler.speculation import Drafts


@dataclass(frozen=True, slots=True)
class Schedule:
    """The decision of one pass.

    Attributes:
        plan: the step, or None when there is nothing to compute.
        admitted: sequences that were given a row, for the first time or again.
        preempted: sequences that lost their row and are queued again.
        unplaceable: sequences that need more blocks than the pool has; they hold no row or block.
        scored: runs of the plan that score prompt tokens.
        drafts: draft tokens in the plan, or None.
        steady: set when the plan is one decode of every row past its prompt and nothing else.
    """

    plan: StepPlan | None
    admitted: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    unplaceable: list[Sequence] = field(default_factory=list)
    scored: list[ScoredRun] = field(default_factory=list)
    drafts: Drafts | None = None
    steady: SteadyDecode | None = None
