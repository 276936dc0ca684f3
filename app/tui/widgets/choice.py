"""A dialog of a few named choices, each with a key and what it does; escape takes none."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from app.tui.view.spans import Line, Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines


class Choice(NamedTuple):
    """One choice.

    Attributes:
        key: the letter that takes it.
        name: one or two words.
        effect: what it does, in one line each; already sanitised.
    """

    key: str
    name: str
    effect: Sequence[str]


def build_choices(reason: Sequence[str], choices: Sequence[Choice]) -> list[Line]:
    """The reason for asking, then key, name and effect of each choice."""
    lines: list[Line] = [(Span(text),) for text in reason]
    for choice in choices:
        lines += [(), (Span(choice.key, "bold $accent"), Span(f"  {choice.name}", "bold"))]
        lines += [(Span(f"   {line}", "$muted"),) for line in choice.effect]
    return [*lines, (), (Span("esc", "bold $accent"), Span(" cancel", "$muted"))]


class ChoiceScreen(Dialog[str | None]):
    """Dismisses with the key of a choice, or with None."""

    BINDINGS: ClassVar = [("escape", "dismiss", "cancel")]

    def __init__(self, title: str, reason: Sequence[str], choices: Sequence[Choice]) -> None:
        super().__init__()
        self._title = title
        self._reason = reason
        self._choices = choices

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        with Vertical(id="choice-box") as box:
            box.border_title = self._title
            yield Lines(id="choice-lines")

    def on_mount(self) -> None:
        """Show the choices."""
        lines = build_choices(self._reason, self._choices)
        self.query_one("#choice-lines", Lines).show_lines(lines)

    def on_key(self, event: events.Key) -> None:
        """Take the choice of this key."""
        if any(event.character == choice.key for choice in self._choices):
            event.stop()
            self.dismiss(event.character)
