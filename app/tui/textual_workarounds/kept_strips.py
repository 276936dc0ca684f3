"""Widgets that remember what they rendered: a scrolled row is moved, not drawn again.

When an answer grows by a row every visible widget above it moves. Textual 8.2.8 keeps their rows, but
puts together what surrounds them anew, which costs a paragraph half a millisecond each time.
"""

from textual.geometry import Region
from textual.strip import Strip


class KeptStrips:
    """Mixin of widgets that keep the strips of their last crop until they are dirty."""

    _kept: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`."""
        kept = self._kept
        if kept is None or kept[0] != crop:
            strips = super().render_lines(crop)  # type: ignore[misc]  # mixed into widgets only
            kept = self._kept = (crop, strips)
        return kept[1]

    def _set_dirty(self, *regions: Region) -> None:
        # Where Textual forgets rows as well: text, style, size, theme or selection changed.
        self._kept = None
        super()._set_dirty(*regions)  # type: ignore[misc]
