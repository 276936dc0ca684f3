"""Every key and every slash command, made from the same tables that run them."""

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from app.tui.keys import ALL_KEYS, Group, shown
from app.tui.slash import COMMANDS
from app.tui.view.spans import Line, Span, width
from app.tui.widgets.lines import Lines


def build_help(keymap: Mapping[str, str], disabled: Mapping[str, str], cells: int) -> list[Line]:
    """Headings and rows, in two columns when there is room.

    Args:
        disabled: action id → why it cannot be used now.
    """
    column = cells if cells < 100 else (cells - 4) // 2
    blocks = [_group(group, keymap, disabled, column) for group in Group]
    blocks.append(_commands(column))
    if cells < 100:
        return [line for block in blocks for line in block]
    left: list[Line] = []
    right: list[Line] = []
    for block in blocks:
        (left if len(left) <= len(right) else right).extend(block)
    height = max(len(left), len(right))
    left += [()] * (height - len(left))
    right += [()] * (height - len(right))
    return [(*a, Span(" " * (column - width(a) + 4)), *b) for a, b in zip(left, right, strict=True)]


def _group(
    group: Group, keymap: Mapping[str, str], disabled: Mapping[str, str], cells: int
) -> list[Line]:
    rows = [
        (shown(key, keymap), key.help, disabled.get(key.id, ""))
        for key in ALL_KEYS
        if key.group is group
    ]
    return [_heading(group.value, cells), *(_row(*row) for row in rows), ()]


def _commands(cells: int) -> list[Line]:
    rows = [_row(f"/{c.name} {c.argument}".strip(), c.help, "") for c in COMMANDS]
    slash = _row("//", "send text that begins with a slash", "")
    return [_heading("Commands", cells), *rows, slash, ()]


def _heading(text: str, cells: int) -> Line:
    return (Span(text, "bold $primary"), Span(" " + "─" * max(0, cells - len(text) - 1), "$panel"))


def _row(keys: str, meaning: str, why_not: str) -> Line:
    style = "$faint" if why_not else "$muted"
    note = f" ({why_not})" if why_not else ""
    return (
        Span(f"{keys.ljust(18)} ", "$faint" if why_not else "$accent"),
        Span(meaning + note, style),
    )


class HelpScreen(ModalScreen[None]):
    """The help over everything; any of escape, f1, ? or q closes it."""

    BINDINGS: ClassVar = [("escape,f1,question_mark,q", "dismiss", "close")]

    def __init__(self, keymap: Mapping[str, str], disabled: Mapping[str, str]) -> None:
        super().__init__()
        self._keymap = keymap
        self._disabled = disabled

    def compose(self) -> ComposeResult:
        """A scrolling page."""
        with VerticalScroll(id="help-page") as page:
            page.border_title = "Keys and commands"
            page.border_subtitle = "esc closes"
            yield Lines(id="help-lines")

    def on_resize(self) -> None:
        """One column or two."""
        cells = self.query_one("#help-page").scrollable_content_region.width
        self.query_one("#help-lines", Lines).show(build_help(self._keymap, self._disabled, cells))
