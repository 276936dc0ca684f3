"""Renders pixels as half-blocks: two pixel rows share a text row; pixels may be transparent."""

from collections.abc import Mapping

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

Frame = tuple[str, ...]


def render_frame(frame: Frame, colors: Mapping[str, Color]) -> list[list[Segment]]:
    """`len(frame) / 2` rows of segments; letters without a colour are transparent."""
    return [
        [_cell(colors.get(up), colors.get(down)) for up, down in zip(upper, lower, strict=True)]
        for upper, lower in zip(frame[::2], frame[1::2], strict=True)
    ]


def _cell(upper: Color | None, lower: Color | None) -> Segment:
    if upper is None and lower is None:
        return Segment(" ")
    if upper is None:
        return Segment("▄", Style(color=lower))
    if lower is None:
        return Segment("▀", Style(color=upper))
    return Segment("▀", Style(color=upper, bgcolor=lower))
