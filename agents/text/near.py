"""Near matches of a misspelt name."""

from collections.abc import Iterable
from difflib import get_close_matches


def near_matches(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that resemble `name`, the nearest first."""
    return get_close_matches(name.lower().replace("-", "_"), list(known), n=3, cutoff=0.6)
