"""The ASCII character set, as a filter behind every widget: borders, rules and dots of any of them.

`Glyphs` chooses what we draw on purpose; frames and scroll bars are Textual's. Each replacement is as
wide as what it replaces, so no layout depends on it. Letters of people and models stay as they are.
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
    ">": "▶▸❯",
    "^": "▲↑",
    "v": "▼↓",
    "x": "✗",
    "u": "µ",
    "a": "ā",
    "<": "⟨",
    "]": "⟩",
}
ASCII_TABLE = str.maketrans({glyph: plain for plain, glyphs in _DRAWN.items() for glyph in glyphs})


class AsciiFilter(LineFilter):
    """Replaces glyphs that an ASCII terminal has not."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments in ASCII, as far as we drew them."""
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(ASCII_TABLE), segment.style, segment.control)
            for segment in segments
        ]
