"""A click on a widget that was removed and is still on the screen.

Textual 8.2.8 begins a selection of text with the position of the widget's parent, which it no longer has.
"""

from textual.geometry import Offset
from textual.widget import Widget


class RemovedUnderPointer:
    """Mixin of screens on which no text of removed widgets is selected."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """The widget at a position and the position in its text; None for one that was removed."""
        found: tuple[Widget | None, Offset | None]
        found = super().get_widget_and_offset_at(x, y)  # type: ignore[misc]  # mixed into screens
        return found if found[0] is None or found[0].parent is not None else (None, None)
