"""The rows above the prompt that complete what is typed: slash commands, their arguments, names after `@`."""

from app.slash.completion import Completion
from app.tui.slash import build_completions
from app.tui.widgets.lines import Lines


class Completions(Lines):
    """Hidden while nothing completes the text."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.display = False

    def show_completion(self, found: Completion | None) -> None:
        """Show what completes a text."""
        lines = build_completions(found)
        self.display = bool(lines)
        self.show_lines(lines)
