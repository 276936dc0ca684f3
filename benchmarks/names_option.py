"""`names_among`: the type of a command-line option that takes some of a list of names."""

import argparse
from collections.abc import Callable, Iterable


def names_among(known: Iterable[str]) -> Callable[[str], list[str]]:
    """An argparse type: names separated by commas, each of which must be known."""
    choices = tuple(known)

    def names(text: str) -> list[str]:
        found = [name for name in text.split(",") if name]
        if unknown := sorted(set(found) - set(choices)):
            raise argparse.ArgumentTypeError(
                f"unknown {', '.join(unknown)}; choose from {', '.join(choices)}"
            )
        return found

    return names
