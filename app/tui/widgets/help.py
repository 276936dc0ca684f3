"""The help screen: how to do common things, then all keys and slash commands, from their tables."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from app.slash.parse import available
from app.tui.keys import ALL_KEYS, Group, shown
from app.tui.view.spans import Line, Span, width
from app.tui.widgets.dialog import Dialog
from app.tui.widgets.lines import Lines

_KEYS = 18
"""Width of the column of keys in cells; longer ones have their meaning in the row below."""


HOW_TO: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Continue from a word of an answer", ("tok.next", "fork")),
    ("See what it could have said there", ("tok.next", "alternatives")),
    ("Get four answers at once", ("expand", "4")),
    ("Get four continuations from a word of an answer", ("tok.next", "expand.deep", "4")),
    ("Compare an answer with the one before it", ("compare",)),
    ("Mark messages, then compare them", ("mark", "compare")),
    ("Make this branch the main one", ("promote",)),
    ("Go to another branch", ("tree.toggle", "adopt")),
    ("Find an old branch by its words", ("search.all",)),
    ("Remove a branch, and bring it back", ("prune", "undo")),
    ("Mark messages, then see which KV blocks they share", ("mark", "kv.show")),
    ("Switch the model", ("/model",)),
    ("Switch the theme", ("theme",)),
    ("Serve this engine, as `pravaha --serve` does without a screen", ("/serve",)),
    ("Use it from another terminal", ("pravaha --attach URL",)),
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
    rows: list[_Row] = []
    for task, steps in HOW_TO:
        # Of several keys for one action the first is enough here.
        keys = [shown(of_id[one], keymap).split()[0] if one in of_id else one for one in steps]
        rows.append(_Row(" ".join(keys), task))
    navigate = shown(of_id["navigate"], keymap)
    return [_heading(f"How to: letters after {navigate}", cells), *_rows(rows, cells), ()]


def _group(
    group: Group, keymap: Mapping[str, str], disabled: Mapping[str, str], cells: int
) -> list[Line]:
    keys = [key for key in ALL_KEYS if key.group is group]
    reasons = Counter(disabled[key.id] for key in keys if key.id in disabled)
    # Repeated in most rows, a reason would be all that one sees.
    common = next((why for why, count in reasons.items() if count > len(keys) / 2), "")
    rows = [_Row(shown(key, keymap), key.help, disabled.get(key.id, "")) for key in keys]
    return [_heading(group.value, cells, common), *_rows(rows, cells, common), ()]


def _commands(cells: int) -> list[Line]:
    rows = [_Row(f"/{c.name} {c.argument}".strip(), c.help) for c in available("screen")]
    rows.append(_Row("//", "send text that begins with a slash"))
    return [_heading("Commands", cells), *_rows(rows, cells), ()]


def _heading(text: str, cells: int, note: str = "") -> Line:
    said = f" ({note})" if note else ""
    line = Span(" " + "─" * max(0, cells - len(text) - len(said) - 1), "$panel")
    return (Span(text, "bold $primary"), Span(said, "$muted"), line)


class _Row(NamedTuple):
    """Keys or a command, their meaning, and why they have no effect now."""

    keys: str
    meaning: str
    why_not: str = ""


def _rows(rows: Sequence[_Row], cells: int, said: str = "") -> list[Line]:
    """The meaning wrapped beside the keys, with the reason for what is disabled unless it is `said`."""
    lines: list[Line] = []
    for keys, meaning, why_not in rows:
        note = f" ({why_not})" if why_not and why_not != said else ""
        style = ("$faint", "$faint") if why_not else ("$accent", "$muted")
        pieces = textwrap.wrap(meaning + note, max(12, cells - _KEYS - 1))
        beside = [keys]
        if len(keys) > _KEYS:
            lines += [(Span(piece, style[0]),) for piece in textwrap.wrap(keys, cells)]
            beside = [""]
        beside += [""] * (len(pieces) - 1)
        lines += [
            (Span(f"{one.ljust(_KEYS)} ", style[0]), Span(piece, style[1]))
            for one, piece in zip(beside, pieces, strict=True)
        ]
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
