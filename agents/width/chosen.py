"""`Chosen`: what a widening ended with."""

from dataclasses import dataclass, field

from agents.api.usage import Usage
from agents.width.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Chosen:
    """The result.

    Attributes:
        candidate: the best one, or None if no candidate has usable code.
        verified: whether it passed all checks, at least one of which decides.
        decided_by: name of the check that decided, `agreement`, `likelihood`, or empty.
        reason: one sentence.
        candidates: all that were written, in order.
        stopped: how many were aborted because one had passed.
        usage: tokens of all requests.
    """

    candidate: Candidate | None
    verified: bool
    decided_by: str
    reason: str
    candidates: tuple[Candidate, ...] = ()
    stopped: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def code(self) -> str:
        """The chosen code, or an empty text."""
        return "" if self.candidate is None else self.candidate.code

    @property
    def passed(self) -> bool:
        """Whether the chosen candidate passed every check."""
        return self.candidate is not None and self.candidate.failed is None
