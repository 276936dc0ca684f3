"""Counting votes."""

from collections import Counter
from collections.abc import Iterable


def counted(ballots: Iterable[str | None]) -> Counter[str]:
    """Votes by name; empty ballots do not count."""
    return Counter(name.strip() for name in ballots if name and name.strip())


def majority(counts: Counter[str]) -> str | None:
    """The name with more than half of all votes, or None."""
    total = counts.total()
    for name, votes in counts.items():
        if votes > total / 2:
            return name
    return None


def ranking(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))


def turnout(ballots: int, members: int) -> str:
    if not members:
        return "no members"
    return f"{100 * ballots / members:.1f} %"
