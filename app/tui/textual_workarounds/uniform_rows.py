"""Containers whose rows are all equal: one row is rendered and repeated."""

from textual.geometry import Region
from textual.strip import Strip


class UniformRows:
    """Mixin of containers without content, border and padding above or below of their own.

    The size of a message changes with every new row, and Textual 8.2.8 renders all rows of a widget whose
    size changed.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`."""
        row = Region(crop.x, crop.y, crop.width, 1)
        strips: list[Strip] = super().render_lines(row)  # type: ignore[misc]  # widgets only
        return strips * crop.height
