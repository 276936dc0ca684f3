"""Replaces drawing characters by ASCII in the output of all widgets.

`Glyphs` covers the characters that we draw; this filter covers Textual's own, such as borders and scroll
bars. Each replacement has the width of the original, so that layouts do not change. Letters in text of
users and models are not replaced.
"""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_DRAWN = {
    "-": "─━╌┄┈╴╶–—▔",
    "|": "│┃╎┆┊▏▎▍▌▐▕║┤├╡╞",
    "+": "╭╮╰╯┌┐└┘┏┓┗┛┬┴┼╋╔╗╚╝",
    "=": "═≋",
    "#": "█▉▊▋■▓▇▆▅▀▄",
    "_": "▁▂▃▔",
    ".": "·…•░▒",
    "*": "●◆★",
    "o": "○◦▪",
    ">": "▶▸❯›→↳",
    "^": "▲↑",
    "v": "▼↓",
    "x": "✗×",
    "u": "µ",
    "~": "≈",
    "a": "ā",
    "<": "⟨◀‹",
    "]": "⟩",
}
ASCII_TABLE = str.maketrans({glyph: plain for plain, glyphs in _DRAWN.items() for glyph in glyphs})


class AsciiFilter(LineFilter):
    """Replaces the characters of `ASCII_TABLE`."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments with drawing characters replaced."""
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(ASCII_TABLE), segment.style, segment.control)
            for segment in segments
        ]
