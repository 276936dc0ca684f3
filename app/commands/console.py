"""The console of commands that print tables."""

import sys

from rich.console import Console


def console() -> Console:
    """Standard output; lines are wrapped in a terminal only, because programs read a pipe by lines."""
    return Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
