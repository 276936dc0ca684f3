"""Renders pixels as half-blocks: two pixel rows share a text row; pixels may be transparent."""

from collections.abc import Mapping

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from app.tui.view.spans import Line, Span

Frame = tuple[str, ...]


def render_frame(frame: Frame, colors: Mapping[str, Color]) -> list[list[Segment]]:
    """`len(frame) / 2` rows of segments; letters without a colour are transparent."""
    return [
        [_cell(colors.get(up), colors.get(down)) for up, down in zip(upper, lower, strict=True)]
        for upper, lower in zip(frame[::2], frame[1::2], strict=True)
    ]


def small_lines(frame: Frame, palette: Mapping[str, str]) -> list[Line]:
    """The same as lines of spans in theme roles, for rows that are made of spans.

    Args:
        frame: rows of palette letters.
        palette: letter → theme variable, without the `$`.
    """
    return [
        tuple(
            _span(palette.get(up), palette.get(down)) for up, down in zip(upper, lower, strict=True)
        )
        for upper, lower in zip(frame[::2], frame[1::2], strict=True)
    ]


def _span(upper: str | None, lower: str | None) -> Span:
    if upper is None and lower is None:
        return Span(" ")
    if upper is None:
        return Span("▄", f"${lower}")
    if lower is None:
        return Span("▀", f"${upper}")
    return Span("▀", f"${upper} on ${lower}")


def _cell(upper: Color | None, lower: Color | None) -> Segment:
    if upper is None and lower is None:
        return Segment(" ")
    if upper is None:
        return Segment("▄", Style(color=lower))
    if lower is None:
        return Segment("▀", Style(color=upper))
    return Segment("▀", Style(color=upper, bgcolor=lower))
