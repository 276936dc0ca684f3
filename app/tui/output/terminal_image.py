"""The cells that the terminal shows, so that only cells that changed are written.

Guard: an update costs microseconds for each of its rows; rows are compared as lists of cells. Textual 8.2.8
writes whole spans: a scroll bar beside a scrolled answer, blank cells and unchanged words with it, and sets
colours again for every segment.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

Run = tuple[int, int, Strip]
"""Row, column, and the strip that begins there."""

_ONE_CELL_EACH = re.compile("[ -~¡-¬®-ɏ‐-‧‰-⁞←-⇿∀-⋿─-◺❬-❱✓✗]*")
"""Text of which terminals draw every character one cell wide. Terminals disagree about the rest."""
_SHORT_GAP = 6
"""Unchanged cells between two changed ones that cost less to write than to skip."""
_RESET = "\x1b[0m"
_SHOWN_ON_BLANKS = (1 << 3) | (1 << 4) | (1 << 6) | (1 << 8) | (1 << 9) | (1 << 12)
"""Bits of Rich's attributes that a blank shows: underline, blink, reverse, strike, underline2, overline."""


class Look(NamedTuple):
    """The parameters of the sequence that sets a style.

    Attributes:
        attributes: such as `1` for bold; may be empty, as the colours may.
        blank: whether a space in this style shows its background only.
    """

    attributes: str
    foreground: str
    background: str
    blank: bool = True


_PLAIN = Look("", "", "")
_WHOLE = Look("whole", "", "", False)
"""Of the cells of a strip that is only ever written as a whole."""


class TerminalImage:
    """What was written last to each cell. Not thread-safe."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[list[str], list[Look]]] = {}

    def clear(self) -> None:
        """Nothing is known: the next update is written completely."""
        self._rows.clear()

    def update(self, runs: Iterable[Run], colors: ColorSystem) -> str:
        """The sequences that change the terminal to show `runs`; empty if it does already."""
        out = _Writer()
        for y, x, strip in runs:
            texts, styles = _cells(strip, colors)
            old_texts, old_styles = self._rows.setdefault(y, ([], []))
            end = x + len(texts)
            if len(old_texts) < end:
                missing = end - len(old_texts)
                old_texts += [""] * missing
                old_styles += [_PLAIN] * missing
            if old_texts[x:end] == texts and old_styles[x:end] == styles:
                continue
            if styles and styles[0] is _WHOLE:
                out.write_whole(y, x, texts[0])
            else:
                for begin, stop in _changed(old_texts, old_styles, texts, styles, x):
                    out.write(y, x + begin, texts[begin:stop], styles[begin:stop])
            old_texts[x:end] = texts
            old_styles[x:end] = styles
        return out.text()


class _Writer:
    """Joins cells to sequences, without moves and colours that are in effect already."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._at: tuple[int, int] | None = None
        self._style = _PLAIN

    def write(self, y: int, x: int, texts: list[str], styles: list[Look]) -> None:
        self._move(y, x)
        begin = 0
        for index, style in enumerate(styles):
            if style is not self._style and style != self._style:
                if texts[index] == " " and self._can_show_blank(style):
                    continue
                self._parts.append("".join(texts[begin:index]))
                begin = index
                self._set(style)
        self._parts.append("".join(texts[begin:]))
        self._at = (y, x + len(texts))

    def write_whole(self, y: int, x: int, text: str) -> None:
        self._reset()
        self._at = None
        self._move(y, x)
        self._parts.append(text)
        self._at = None  # it may be wider on this terminal

    def text(self) -> str:
        self._reset()
        return "".join(self._parts)

    def _move(self, y: int, x: int) -> None:
        if self._at != (y, x):
            self._parts.append(f"\x1b[{y + 1};{x + 1}H")

    def _can_show_blank(self, style: Look) -> bool:
        now = self._style
        return style.blank and now.blank and style.background == now.background

    def _set(self, style: Look) -> None:
        now, self._style = self._style, style
        if style == _PLAIN:
            self._parts.append(_RESET)
            return
        if style.attributes != now.attributes:
            codes = ["0", *filter(None, style[:3])]
        else:
            codes = []
            if style.foreground != now.foreground:
                codes.append(style.foreground or "39")
            if style.background != now.background:
                codes.append(style.background or "49")
        if codes:
            self._parts.append(f"\x1b[{';'.join(codes)}m")

    def _reset(self) -> None:
        if self._style != _PLAIN:
            self._parts.append(_RESET)
            self._style = _PLAIN


def _cells(strip: Strip, colors: ColorSystem) -> tuple[list[str], list[Look]]:
    """Text and style of each cell; the colour of blanks is left out."""
    texts: list[str] = []
    styles: list[Look] = []
    for text, style, _ in strip:
        if (style is not None and style.link) or not (
            text.isascii() or _ONE_CELL_EACH.fullmatch(text)
        ):
            return _whole(strip, colors)
        texts += text
        if style is None:
            styles += [_PLAIN] * len(text)
            continue
        look, on_blanks = _looks(style, colors)
        if look is on_blanks or " " not in text:
            styles += [look] * len(text)
        else:
            styles += [on_blanks if each == " " else look for each in text]
    return texts, styles


@lru_cache(maxsize=4096)
def _looks(style: Style, colors: ColorSystem) -> tuple[Look, Look]:
    """The style's look, and that of its blanks."""
    foreground = background = ""
    if style.color is not None:
        foreground = ";".join(style.color.downgrade(colors).get_ansi_codes())
    if style.bgcolor is not None:
        background = ";".join(style.bgcolor.downgrade(colors).get_ansi_codes(foreground=False))
    attributes = Strip.render_ansi(
        style.without_color if style.color or style.bgcolor else style, colors
    )
    blank = not style._attributes & style._set_attributes & _SHOWN_ON_BLANKS
    look = Look(attributes, foreground, background, blank)
    return look, Look("", "", background) if blank else look


def _whole(strip: Strip, colors: ColorSystem) -> tuple[list[str], list[Look]]:
    """A strip whose first cell holds everything, and the others nothing."""
    rendered = "".join(
        text if style is None else Strip.render_style(style, text, colors)
        for text, style, _ in strip
    )
    width = max(1, strip.cell_length)
    return [rendered] + [""] * (width - 1), [_WHOLE] * width


def _changed(
    old_texts: list[str], old_styles: list[Look], texts: list[str], styles: list[Look], x: int
) -> Iterable[tuple[int, int]]:
    """Ranges of cells that differ; ranges with a short gap between them are one."""
    begin = stop = -1
    for index, (text, style) in enumerate(zip(texts, styles, strict=True)):
        if text == old_texts[x + index] and style == old_styles[x + index]:
            continue
        if begin >= 0 and index - stop > _SHORT_GAP:
            yield begin, stop
            begin = -1
        if begin < 0:
            begin = index
        stop = index + 1
    if begin >= 0:
        yield begin, stop
