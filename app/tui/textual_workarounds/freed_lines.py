"""The lines of a removed widget are freed.

`StylesCache.get_inner_outer` of Textual 8.2.8 is a method with an `lru_cache`, which keeps the last 1,024
instances that called it, and each keeps the lines that its widget had drawn: 20 MB after a hundred answers.
"""

from functools import lru_cache

from textual._styles_cache import StylesCache
from textual.color import Color
from textual.style import Style


@lru_cache(1024)
def _inner_outer(base_background: Color, background: Color) -> tuple[Style, Style]:
    return Style(background=base_background + background), Style(background=base_background)


def _get_inner_outer(
    _cache: StylesCache, base_background: Color, background: Color
) -> tuple[Style, Style]:
    return _inner_outer(base_background, background)


def free_lines_of_removed_widgets() -> None:
    """Replace the method in all widgets of this process."""
    StylesCache.get_inner_outer = _get_inner_outer  # type: ignore[method-assign,assignment]
