"""Widgets that cache their rendered strips, so that a scrolled widget is moved and not redrawn.

When an answer grows by a row, every visible widget above it moves. Textual 8.2.8 caches their rows, but
composes margins and borders again, which takes 0.5 ms for a paragraph.
"""

from textual.geometry import Region
from textual.strip import Strip


class CachedStrips:
    """Mixin of widgets that keep the strips of their last crop until they are dirty."""

    _cached_strips: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`."""
        cached = self._cached_strips
        if cached is None or cached[0] != crop:
            strips = super().render_lines(crop)  # type: ignore[misc]  # mixed into widgets only
            cached = self._cached_strips = (crop, strips)
        return cached[1]

    def _set_dirty(self, *regions: Region) -> None:
        # Textual clears its own cache here: text, style, size, theme or selection changed.
        self._cached_strips = None
        super()._set_dirty(*regions)  # type: ignore[misc]
