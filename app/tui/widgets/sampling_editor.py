"""The editor of a conversation's sampling parameters: one field each; an empty one is left to the model."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Label

from app.text.safe_text import safe_line
from app.tui.textual_workarounds.one_line import OneLine
from app.tui.view.spans import Span
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines
from engine.api.errors import InvalidRequest
from engine.conversations.branch_sampling import PARAMETERS, Changes, read_value

_PREFIX = "sampling-"


class SamplingEditor(Dialog[bool]):
    """Dismisses with True once the parameters were accepted, with False after Esc."""

    BINDINGS: ClassVar = [
        ("escape", "leave", "back"),
        ("down", "move(1)", "next"),
        ("up", "move(-1)", "previous"),
        ("ctrl+r", "reset", "reset all"),
    ]

    def __init__(
        self,
        values: Mapping[str, str],
        otherwise: Mapping[str, tuple[str, str]],
        apply: Callable[[Changes], None],
        *,
        first: str = "",
    ) -> None:
        """Create the editor.

        Args:
            values: what the branch has set, by name; empty texts otherwise.
            otherwise: what applies to an empty field and where it comes from, by name.
            apply: takes the new values; raises `InvalidRequest` for one that is refused.
            first: the parameter to begin at; empty for the first one.
        """
        super().__init__()
        self._values = values
        self._otherwise = otherwise
        self._apply = apply
        self._first = first

    def compose(self) -> ComposeResult:
        """A row of label and field for each parameter."""
        with Vertical(id="sampling-box") as box:
            box.border_title = "Sampling of this conversation"
            box.border_subtitle = "enter applies, ctrl+r clears all, esc goes back"
            with VerticalScroll(id="sampling-fields", can_focus=False):
                for name in PARAMETERS:
                    value, source = self._otherwise[name]
                    with Horizontal(classes="sampling-row"):
                        yield Label(name, classes="sampling-name", markup=False)
                        yield OneLine(
                            self._values[name],
                            placeholder=f"{value} ({source})",
                            id=_PREFIX + name,
                            compact=True,
                        )
            yield Lines(id="sampling-problem")

    def on_mount(self) -> None:
        """Focus the field to begin at."""
        (self._field(self._first) if self._first else self.query(Input).first()).focus()

    @on(Input.Changed)
    def _check(self) -> None:
        self._problem("")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        changes: dict[str, int | float | None] = {}
        try:
            for name in PARAMETERS:
                changes[name] = read_value(name, self._field(name).value)
            self._apply(changes)
        except InvalidRequest as error:
            self._problem(safe_line(str(error)))
            if error.param in PARAMETERS:
                self._field(str(error.param)).focus()
            return
        self._close(True)

    def action_move(self, by: int) -> None:
        """Focus the next or previous field."""
        self.focus_next(Input) if by > 0 else self.focus_previous(Input)

    def action_reset(self) -> None:
        """Empty every field; Enter then applies that."""
        for field in self.query(Input):
            field.value = ""

    def action_leave(self) -> None:
        """Close and keep the parameters as they were."""
        self._close(False)

    def _field(self, name: str) -> Input:
        return self.query_one(f"#{_PREFIX}{name}", Input)

    def _problem(self, text: str) -> None:
        self.query_one("#sampling-problem", Lines).show_lines([(Span(text, "$error"),)])

    def _close(self, applied: bool) -> None:
        if self.is_current:  # a second Enter may arrive before this screen is removed
            self.dismiss(applied)
