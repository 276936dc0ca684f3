"""`PatchCandidate`: a change that may repair a failing test, and `clusters` of those that behave alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agents.repair.failing_tests.suspects import Suspect


@dataclass(slots=True)
class PatchCandidate:
    """A changed file.

    Attributes:
        suspect: what was changed.
        text: the whole file after the change.
        diff: the change as a unified diff.
        what: the change in a few words.
        tier: of a small change (`operators`); None for one by the model.
        votes: how many samples of the model are this change.
        mended: how many tests that failed pass with it.
        signature: what it did with the varied tests.
    """

    suspect: Suspect
    text: str
    diff: str
    what: str
    tier: int | None = None
    votes: int = 0
    mended: int = 0
    signature: tuple[str, ...] = field(default_factory=tuple)

    @property
    def size(self) -> tuple[int, int]:
        """Changed lines, then characters of them: the smaller one is preferred."""
        lines = [
            one
            for one in self.diff.splitlines()
            if one[:1] in "+-" and not one.startswith(("+++", "---"))
        ]
        return len(lines), sum(map(len, lines))


Refuse = Callable[[PatchCandidate], str]
"""Why a change may not be a repair, or empty."""

_WEIGHTS = {0: 4.0, 1: 2.0, 2: 1.0}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Candidates that did the same with every varied test.

    Attributes:
        candidates: the smallest change first.
        weight: how much speaks for them: a sample of the model counts 1, the most usual of the small
            changes 4, 2 or 1 by its tier.
    """

    candidates: tuple[PatchCandidate, ...]
    weight: float

    @property
    def best(self) -> PatchCandidate:
        """The smallest change."""
        return self.candidates[0]

    @property
    def is_by_model(self) -> bool:
        """Whether no usual slip is among them."""
        return all(one.tier is None for one in self.candidates)


def clusters(candidates: Sequence[PatchCandidate]) -> list[Cluster]:
    """The candidates by what they did, what most speaks for first."""
    groups: dict[tuple[str, ...], list[PatchCandidate]] = {}
    for one in candidates:
        groups.setdefault(one.signature, []).append(one)
    found = []
    for members in groups.values():
        tiers = [_WEIGHTS[one.tier] for one in members if one.tier is not None]
        weight = sum(one.votes for one in members) + max(tiers, default=0.0)
        ordered = sorted(members, key=lambda one: (one.size, one.tier is None))
        found.append(Cluster(tuple(ordered), weight))
    return sorted(found, key=lambda one: (-one.weight, one.best.size))
