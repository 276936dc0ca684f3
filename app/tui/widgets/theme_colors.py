"""Theme colours as Rich colours, for widgets that create their own segments."""

from collections.abc import Mapping

from rich.color import Color as RichColor
from textual.color import Color


def rich_color(value: str) -> str:
    """The Rich name of a theme colour: `#rrggbb`, a name such as `bright_blue`, or `default`."""
    color = Color.parse(value)
    if color.ansi is None:
        return color.hex6
    return color.rich_color.name


def parsed(value: str) -> RichColor:
    """A theme colour as a Rich colour."""
    return RichColor.parse(rich_color(value))


def legible_text(ground: str, variables: Mapping[str, str]) -> str:
    """Of a theme's foreground and background, the colour whose brightness differs more from `ground`."""
    brightness = Color.parse(ground).brightness
    return max(
        (variables["foreground"], variables["background"]),
        key=lambda value: abs(Color.parse(value).brightness - brightness),
    )
