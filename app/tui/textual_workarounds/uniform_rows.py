"""Containers of which every row looks the same: one is rendered, and shown as often as needed."""

from textual.geometry import Region
from textual.strip import Strip


class UniformRows:
    """Mixin of containers without a border or padding above or below, and nothing drawn of their own.

    A message that grew by a row is of another size, and Textual 8.2.8 renders all rows of a widget whose
    size changed.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`."""
        row = Region(crop.x, crop.y, crop.width, 1)
        strips: list[Strip] = super().render_lines(row)  # type: ignore[misc]  # widgets only
        return strips * crop.height
