"""The dialog that finds an earlier prompt."""

from collections.abc import Sequence

from textual import on
from textual.widgets import Input

from app.tui.view.hits import build_match
from app.tui.widgets.query import QueryScreen

SHOWN = 100
"""Prompts that are listed at most, so that a key takes little time; further ones are found by more words."""


def find_prompts(history: Sequence[str], query: str) -> list[str]:
    """The newest prompts that contain the query, newest first, each once. Case is ignored.

    Args:
        history: oldest first.
    """
    wanted = query.casefold()
    found = [text for text in dict.fromkeys(reversed(history)) if wanted in text.casefold()]
    return found[:SHOWN]


class PastPrompts(QueryScreen[str]):
    """Dismisses with the chosen prompt, or with None.

    Args:
        history: earlier prompts, oldest first.
    """

    def __init__(self, history: Sequence[str]) -> None:
        super().__init__("Earlier prompts", "enter takes, esc closes", "words of a prompt")
        self._history = history

    def on_mount(self) -> None:
        """Show the newest prompts once there is a width to show them in."""
        self.call_after_refresh(self._find)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._find()

    def _find(self) -> None:
        if self._dismissed:  # its widgets may be gone
            return
        query = self.query_one(Input).value.strip()
        prompts = find_prompts(self._history, query)
        rows = [[build_match(text.strip(), query, self.cells)] for text in prompts]
        self.show_found(prompts, rows)
        self.show_note("" if prompts else "no prompt contains that")
