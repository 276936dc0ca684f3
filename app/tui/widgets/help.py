"""The help screen: how to do common things, then all keys and slash commands, from their tables."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from app.slash.parse import available
from app.tui.keys import ALL_KEYS, Group, shown
from app.tui.view.spans import Line, Span, width
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines

_KEYS = 18
"""Width of the column of keys in cells."""


HOW_TO: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Continue from a word of an answer", ("tok.next", "fork")),
    ("See what it could have said there", ("tok.next", "alternatives")),
    ("Get four answers at once", ("expand", "4")),
    ("Compare an answer with the one before it", ("compare",)),
    ("Mark messages, then compare them", ("mark", "compare")),
    ("Make this branch the main one", ("promote",)),
    ("Go to another branch", ("tree.toggle", "adopt")),
    ("Find an old branch by its words", ("search.all",)),
    ("Remove a branch, and bring it back", ("prune", "undo")),
    ("Mark messages, then see which KV blocks they share", ("mark", "kv.show")),
    ("Switch the model", ("/model",)),
    ("Switch the theme", ("theme",)),
    ("Use the engine of another process", ("--attach URL",)),
)
"""What is to be done, with the actions that do it in order: ids of keys, or what is typed."""


def build_help(
    keymap: Mapping[str, str],
    disabled: Mapping[str, str],
    cells: int,
    first: Group | None = None,
) -> list[Line]:
    """Headings and rows, in two columns from 100 cells on.

    First come the common tasks. In a pane with keys of its own they follow these.

    Args:
        keymap: action id → keys, after remapping.
        disabled: action id → the reason why it is not available now.
        cells: width.
        first: the group that comes first, of the pane that has the focus.
    """
    column = cells if cells < 100 else (cells - 4) // 2
    groups = sorted(Group, key=lambda group: group is not first)
    blocks = [_group(group, keymap, disabled, column) for group in groups]
    blocks.insert(first not in _OF_CHAT, _how_to(keymap, column))
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


_OF_CHAT = (None, Group.PROMPT, Group.NAVIGATE, Group.BRANCHES)


def _how_to(keymap: Mapping[str, str], cells: int) -> list[Line]:
    of_id = {key.id: key for key in ALL_KEYS}
    rows: list[tuple[str, str, str]] = []
    for task, steps in HOW_TO:
        # Of several keys for one action the first is enough here.
        keys = [shown(of_id[one], keymap).split()[0] if one in of_id else one for one in steps]
        rows.append((" ".join(keys), task, ""))
    navigate = shown(of_id["navigate"], keymap)
    return [_heading(f"How to: letters after {navigate}", cells), *_rows(rows, cells), ()]


def _group(
    group: Group, keymap: Mapping[str, str], disabled: Mapping[str, str], cells: int
) -> list[Line]:
    rows = [
        (shown(key, keymap), key.help, disabled.get(key.id, ""))
        for key in ALL_KEYS
        if key.group is group
    ]
    return [_heading(group.value, cells), *_rows(rows, cells), ()]


def _commands(cells: int) -> list[Line]:
    rows = [(f"/{c.name} {c.argument}".strip(), c.help, "") for c in available("screen")]
    rows.append(("//", "send text that begins with a slash", ""))
    return [_heading("Commands", cells), *_rows(rows, cells), ()]


def _heading(text: str, cells: int) -> Line:
    return (Span(text, "bold $primary"), Span(" " + "─" * max(0, cells - len(text) - 1), "$panel"))


def _rows(rows: Sequence[tuple[str, str, str]], cells: int) -> list[Line]:
    """Rows of (keys, meaning, why it is disabled), with the meaning wrapped beside the keys."""
    lines: list[Line] = []
    for keys, meaning, why_not in rows:
        note = f" ({why_not})" if why_not else ""
        pieces = textwrap.wrap(meaning + note, max(12, cells - max(_KEYS, len(keys)) - 1))
        for number, piece in enumerate(pieces):
            shown_keys = keys if number == 0 else ""
            lines.append(
                (
                    Span(f"{shown_keys.ljust(_KEYS)} ", "$faint" if why_not else "$accent"),
                    Span(piece, "$faint" if why_not else "$muted"),
                )
            )
    return lines


class HelpPage(VerticalScroll, can_focus=True):
    """The rows, laid out again when the width changes."""

    def __init__(
        self, keymap: Mapping[str, str], disabled: Mapping[str, str], first: Group | None
    ) -> None:
        super().__init__(id="help-page")
        self._first = first
        self._keymap = keymap
        self._disabled = disabled
        self.border_title = "Keys and commands"
        self.border_subtitle = "letters and digits work outside the prompt (shift+tab); esc closes"

    def compose(self) -> ComposeResult:
        """One widget of lines."""
        yield Lines(id="help-lines")

    def on_resize(self) -> None:
        """Redraw in one or two columns."""
        cells = self.scrollable_content_region.width
        self.query_one("#help-lines", Lines).show_lines(
            build_help(self._keymap, self._disabled, cells, self._first)
        )


class HelpScreen(Dialog[None]):
    """The help as a modal screen; escape, f1, ? or q close it."""

    BINDINGS: ClassVar = [("escape,f1,question_mark,q", "dismiss", "close")]

    def __init__(
        self,
        keymap: Mapping[str, str],
        disabled: Mapping[str, str],
        first: Group | None = None,
    ) -> None:
        super().__init__()
        self._first = first
        self._keymap = keymap
        self._disabled = disabled

    def compose(self) -> ComposeResult:
        """A scrolling page."""
        yield HelpPage(self._keymap, self._disabled, self._first)
