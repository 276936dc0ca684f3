"""A screen as SVG, row by row: text as text, blocks and box drawing as shapes.

Rich's own export draws every glyph with a font that the page has to fetch; with another one, the half blocks
of the KV map and the avatar show gaps. Here blocks fill their cells, text keeps to its columns in every
monospace font, and the file refers to nothing outside itself.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.strip import Strip

CELL_WIDTH, CELL_HEIGHT = 8, 17
"""User units of a cell."""
MARGIN = 12
"""User units between the screen and the edge of the screenshot."""
_BASELINE = 13
_FONT = (
    "text{font:13.3px 'JetBrains Mono','Fira Code','DejaVu Sans Mono',Menlo,Consolas,monospace;"
    "white-space:pre}"
)
_EIGHTHS = "▁▂▃▄▅▆▇█"
_LEFT_EIGHTHS = "▏▎▍▌▋▊▉"
_WORDS = re.compile(r"\S+(?: \S+)*")
"""What is one text: words with single blanks between them."""


def _block_shapes() -> dict[str, tuple[float, float, float, float]]:
    """Left, top, right and bottom of the filled part of each block element, as shares of the cell."""
    shapes = {char: (0.0, 1 - n / 8, 1.0, 1.0) for n, char in enumerate(_EIGHTHS, start=1)}
    shapes |= {char: (0.0, 0.0, n / 8, 1.0) for n, char in enumerate(_LEFT_EIGHTHS, start=1)}
    shapes |= {
        "▀": (0, 0, 1, 0.5),
        "▐": (0.5, 0, 1, 1),
        "▔": (0, 0, 1, 1 / 8),
        "▕": (7 / 8, 0, 1, 1),
    }
    return shapes


_BLOCKS = _block_shapes()
_WHOLE = (0.0, 0.0, 1.0, 1.0)
_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}
_BOXES = {  # the sides that lines go to: left, right, up, down; capitals are heavy
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "rud", "┤": "lud",
    "┬": "lrd", "┴": "lru", "┼": "lrud", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "╷": "d",
    "╵": "u", "━": "LR", "┃": "UD", "╸": "L", "╺": "R", "╹": "U", "╻": "D",
}  # fmt: skip
_ROUNDED = "╭╮╰╯"


class Colors(NamedTuple):
    """Colours of a theme.

    Attributes:
        foreground: of text that has no other.
        background: of the screenshot.
    """

    foreground: str
    background: str


class Palette:
    """Class names for CSS declarations, in the order of their first use."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, declarations: str) -> str:
        """The class with these declarations."""
        return self._names.setdefault(declarations, f"c{len(self._names)}")

    @property
    def css(self) -> str:
        """Rules of all classes."""
        return _FONT + "".join(f".{name}{{{what}}}" for what, name in self._names.items())


def build_row(strip: Strip, palette: Palette, colors: Colors, column: int = 0) -> str:
    """A row of the screen, or a part of one, as elements whose top is at y = 0.

    Args:
        strip: the row.
        palette: gets the styles that the row needs.
        colors: of cells without their own; the background is not drawn again.
        column: where the strip begins.
    """
    fills: dict[str, list[Rectangle]] = defaultdict(list)
    lines: dict[tuple[str, bool], list[str]] = defaultdict(list)
    texts: list[str] = []
    for segment in strip.simplify():
        style = segment.style or Style.null()
        front, back = _front_and_back(style, colors)
        width = cell_len(segment.text)
        if back != colors.background:
            fills[_fill(back)].append(_rectangle(column, _WHOLE, width))
        word, begin = "", column
        for char in segment.text:
            if char in _BLOCKS:
                fills[_fill(front)].append(_rectangle(column, _BLOCKS[char]))
            elif char in _SHADES:
                fills[_fill(front, _SHADES[char])].append(_rectangle(column, _WHOLE))
            elif char in _BOXES:
                lines[front, _BOXES[char].isupper()].append(_line(column, char))
            else:
                word += char
                column += cell_len(char)
                continue
            texts += _texts(word, begin, style, front, palette)
            column += 1
            word, begin = "", column
        texts += _texts(word, begin, style, front, palette)
    shapes = [
        f'<path class="{palette.name(fill)}" d="{_path(rectangles)}"/>'
        for fill, rectangles in fills.items()
    ]
    for (color, heavy), paths in lines.items():
        name = palette.name(f"fill:none;stroke:{color};stroke-width:{2.4 if heavy else 1.2}")
        shapes.append(f'<path class="{name}" d="{"".join(paths)}"/>')
    return "".join([*shapes, *texts])


def build_screenshot(
    rows: Sequence[str], palette: Palette, columns: int, colors: Colors, *, title: str
) -> str:
    """A whole screenshot from the rows of `build_row`.

    Args:
        title: what the screenshot shows, for people who do not see it.
    """
    placed = "".join(
        f'<g transform="translate(0 {y * CELL_HEIGHT})">{row}</g>\n' for y, row in enumerate(rows)
    )
    return document(placed, palette.css, columns, len(rows), colors, title=title)


def document(content: str, css: str, columns: int, rows: int, colors: Colors, *, title: str) -> str:
    """The document around a screen: size, style, background and title."""
    width, height = columns * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n"
        f'<rect width="{width}" height="{height}" rx="10" fill="{colors.background}"/>\n'
        f'<g transform="translate({MARGIN} {MARGIN})" xml:space="preserve">\n{content}</g>\n</svg>\n'
    )


def _front_and_back(style: Style, colors: Colors) -> tuple[str, str]:
    front = _hex(style.color, colors.foreground)
    back = _hex(style.bgcolor, colors.background)
    return (back, front) if style.reverse else (front, back)


def _hex(color: Color | None, default: str) -> str:
    return default if color is None or color.is_default else color.get_truecolor().hex


def _fill(color: str, opacity: float = 1.0) -> str:
    """Declarations of a filled shape; crisp, because seams between rows would show."""
    shade = f";fill-opacity:{opacity:g}" if opacity < 1 else ""
    return f"fill:{color}{shade};shape-rendering:crispEdges"


class Rectangle(NamedTuple):
    """A filled part of a row, in user units."""

    x: float
    y: float
    width: float
    height: float


def _rectangle(column: int, part: tuple[float, float, float, float], cells: int = 1) -> Rectangle:
    """A part of the cells from `column` on: left, top, right and bottom as shares."""
    left, top, right, bottom = part
    return Rectangle(
        (column + left) * CELL_WIDTH,
        top * CELL_HEIGHT,
        (right - left) * cells * CELL_WIDTH,
        (bottom - top) * CELL_HEIGHT,
    )


def _path(rectangles: Iterable[Rectangle]) -> str:
    """The rectangles as path data, with adjacent ones as one, so that no seam shows."""
    merged: list[Rectangle] = []
    for one in rectangles:
        last = merged[-1] if merged else None
        if last and (last.y, last.height) == (one.y, one.height) and last.x + last.width == one.x:
            merged[-1] = last._replace(width=last.width + one.width)
        else:
            merged.append(one)
    return "".join(
        f"M{one.x:g} {one.y:g}h{one.width:g}v{one.height:g}h{-one.width:g}z" for one in merged
    )


def _line(column: int, char: str) -> str:
    """The lines of a box-drawing character."""
    x, y = column * CELL_WIDTH, 0
    middle_x, middle_y = x + CELL_WIDTH / 2, CELL_HEIGHT / 2
    ends = {
        "l": (x, middle_y), "r": (x + CELL_WIDTH, middle_y),
        "u": (middle_x, y), "d": (middle_x, CELL_HEIGHT),
    }  # fmt: skip
    sides = _BOXES[char].lower()
    if char in _ROUNDED:
        (from_x, from_y), (to_x, to_y) = (ends[side] for side in sides)
        return f"M{from_x:g} {from_y:g}Q{middle_x:g} {middle_y:g} {to_x:g} {to_y:g}"
    return "".join(
        f"M{ends[side][0]:g} {ends[side][1]:g}L{middle_x:g} {middle_y:g}" for side in sides
    )


def _texts(text: str, column: int, style: Style, color: str, palette: Palette) -> Iterable[str]:
    """The words of a text at their columns."""
    declarations = f"fill:{color}"
    for flag, declaration in (
        (style.bold, ";font-weight:bold"),
        (style.italic, ";font-style:italic"),
        (style.underline, ";text-decoration:underline"),
        (style.strike, ";text-decoration:line-through"),
        (style.dim, ";opacity:.6"),
    ):
        declarations += declaration if flag else ""
    for words in _WORDS.finditer(text):
        x = (column + cell_len(text[: words.start()])) * CELL_WIDTH
        width = cell_len(words[0]) * CELL_WIDTH
        yield (
            f'<text class="{palette.name(declarations)}" x="{x}" y="{_BASELINE}" '
            f'textLength="{width}">{escape(words[0], quote=False)}</text>'
        )
