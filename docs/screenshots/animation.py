"""Several screens as one animated SVG without scripts.

Every distinct part of a row is in the file once, and a frame refers to its parts. Frames lie side by side,
and one CSS animation moves them behind a window: it costs a browser less than one animation for each part.
Viewers without animations, and readers who want no motion, see one of the frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from docs.screenshots.screen_svg import CELL_HEIGHT, CELL_WIDTH, Colors, Palette, document

CAPTION_ROWS = 2
"""Rows below the screen, of which the second holds the caption."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One state of the screen.

    Attributes:
        seconds: how long it is shown.
        rows: the parts of each row, as `screen_svg.build_row` makes them.
        caption: what happens, or the keys that are pressed.
    """

    seconds: float
    rows: tuple[tuple[str, ...], ...]
    caption: str


def joined(frames: Sequence[Frame]) -> list[Frame]:
    """The frames, equal neighbours as one."""
    kept: list[Frame] = []
    for frame in frames:
        last = kept[-1] if kept else None
        if last and (last.rows, last.caption) == (frame.rows, frame.caption):
            kept[-1] = Frame(last.seconds + frame.seconds, frame.rows, frame.caption)
        else:
            kept.append(frame)
    return kept


def build_animation(
    frames: Sequence[Frame],
    palette: Palette,
    columns: int,
    colors: Colors,
    *,
    still: int,
    title: str,
) -> str:
    """The animation, which begins again after its last frame.

    Args:
        palette: has the styles of the rows.
        columns: width of the screen.
        still: index of the frame that is shown where nothing moves.
        title: what the screenshot shows, for people who do not see it.
    """
    width = columns * CELL_WIDTH
    step = 2 * width  # the frames beside the window must not be seen in its margin
    height = len(frames[0].rows) + CAPTION_ROWS
    ids: dict[str, int] = {}
    film: list[str] = []
    for index, frame in enumerate(frames):
        uses = "".join(
            f'<use href="#p{ids.setdefault(part, len(ids))}" y="{y * CELL_HEIGHT}"/>'
            for y, row in enumerate(frame.rows)
            for part in row
            if part
        )
        caption = (
            f'<text x="{width // 2}" y="{height * CELL_HEIGHT - 5}" class="caption">'
            f"{escape(frame.caption, quote=False)}</text>"
        )
        film.append(f'<g transform="translate({index * step})">{uses}{caption}</g>\n')
    total = sum(frame.seconds for frame in frames)
    stops: list[str] = []
    passed = 0.0
    for index, frame in enumerate(frames):
        stops.append(f"{100 * passed / total:.3f}%{{transform:translateX({-index * step}px)}}")
        passed += frame.seconds
    css = (
        f"{palette.css}.caption{{fill:{colors.foreground};text-anchor:middle;font-size:16px}}"
        f".film{{animation:film {total:.2f}s step-end infinite}}"
        f"@keyframes film{{{''.join(stops)}}}"
        "@media(prefers-reduced-motion:reduce){.film{animation:none}}"
    )
    parts = "".join(f'<g id="p{number}">{part}</g>\n' for part, number in ids.items())
    content = (
        f"<defs>\n{parts}</defs>\n"
        f'<svg width="{width}" height="{height * CELL_HEIGHT}">'
        f'<g class="film" transform="translate({-still * step})">\n{"".join(film)}</g></svg>\n'
    )
    return document(content, css, columns, height, colors, title=title)
