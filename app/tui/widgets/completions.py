"""The rows above the prompt that complete what is typed: slash commands, collections and files."""

from collections.abc import Callable, Collection

from app.tui import slash
from app.tui.view.spans import Line
from app.tui.widgets.lines import Lines


class Completions(Lines):
    """Hidden while nothing completes the text.

    Args:
        sources: returns the names of the collections that complete after `@`, beside files.
    """

    def __init__(
        self,
        sources: Callable[[], Collection[str]],
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._sources = sources
        self.display = False

    def complete(self, text: str) -> None:
        """Show what completes a text."""
        names = self._sources() if "@" in text else ()
        lines: list[Line] = slash.build_completions(text, names)
        self.display = bool(lines)
        self.show_lines(lines)
