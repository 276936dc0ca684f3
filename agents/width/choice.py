"""`choose`: the best of several candidates, and one sentence that says why."""

from collections.abc import Sequence

from agents.width.agreement import Votes
from agents.width.candidate import Candidate

Choice = tuple[Candidate | None, str, str]
"""The candidate, what decided (name of a check, `agreement`, `likelihood` or empty), and the reason."""


def choose(candidates: Sequence[Candidate], decisive: Sequence[str], votes: Votes | None) -> Choice:
    """The best candidate.

    One that passed everything comes before others; among several, agreement decides, then the lower
    temperature. Of those that failed, the one that came furthest is kept.

    Args:
        candidates: all of them, checked.
        decisive: names of the checks that decide, in order.
        votes: of the candidates that passed every check, in their order; None if they were not compared.
    """
    usable = [one for one in candidates if one.code.strip()]
    if not usable:
        return None, "", "The model wrote no code."
    passed = [one for one in usable if one.failed is None]
    if not passed:
        best = furthest(usable)
        failed = best.failed
        said = f"{failed.check}: {failed.detail}" if failed else ""
        return best, "", f"No candidate of {len(candidates)} passes; the best one fails {said}"
    decided = _decided(passed, decisive)
    if len(passed) == 1 or votes is None:
        best = min(passed, key=lambda one: (one.temperature, -one.mean_logprob))
        if decided:
            return best, decided, _said(best, decisive)
        if len(usable) > 1 and len(passed) == 1:
            return best, best.outcomes[-1].check, f"It alone of {len(usable)} passes all checks."
        return best, "likelihood", "It is the likeliest; nothing shows whether it is right."
    return _by_votes(passed, decided, decisive, votes)


def furthest(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that came furthest through the checks; of equal ones, that of the lowest temperature."""
    return max(candidates, key=lambda one: (*one.rank, -one.temperature))


def _by_votes(
    passed: Sequence[Candidate], decided: str, decisive: Sequence[str], votes: Votes
) -> Choice:
    order = sorted(
        range(len(passed)),
        key=lambda at: (
            -round(votes.scores[at], 6),
            passed[at].temperature,
            -passed[at].mean_logprob,
        ),
    )
    best = passed[order[0]]
    if votes.inputs and len(set(votes.scores)) > 1:
        same = votes.sizes[order[0]]
        shown = f", such as {votes.telling}" if votes.telling else ""
        return (
            best,
            "agreement",
            f"{same} of {len(passed)} candidates agree on all of {votes.inputs} generated inputs{shown}.",
        )
    if decided:
        return best, decided, _said(best, decisive)
    if votes.inputs:
        return (
            best,
            "agreement",
            f"All {len(passed)} candidates agree on {votes.inputs} generated inputs.",
        )
    return best, "likelihood", "It is the likeliest; nothing shows whether it is right."


def _decided(passed: Sequence[Candidate], decisive: Sequence[str]) -> str:
    """The last check that decides and that was passed."""
    names = {one.check for one in passed[0].outcomes}
    return next((name for name in reversed(decisive) if name in names), "")


def _said(best: Candidate, decisive: Sequence[str]) -> str:
    """What the checks that decide said, in one sentence."""
    details = [one.detail.rstrip(".") for one in best.outcomes if one.check in decisive]
    said = "; ".join(detail for detail in details if detail)
    return f"{said}." if said else "It passes all checks."
