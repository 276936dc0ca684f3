"""Undo and redo in a `TextArea` whose scroll bar appears or disappears by it.

Textual 8.2.8 scrolls to the cursor as soon as the scroll bar changes, at a time when the text is already
the new one and the cursor still at its old place, which may not exist any more.
"""

from collections.abc import Sequence

from textual.geometry import Offset
from textual.widgets import TextArea
from textual.widgets.text_area import Edit


class UndoWithScrollbar(TextArea):
    """A `TextArea` that scrolls to the cursor at the end of undo and redo only."""

    _replaying = False

    def _undo_batch(self, edits: Sequence[Edit]) -> None:
        self._replaying = True
        try:
            super()._undo_batch(edits)
        finally:
            self._replaying = False
        self.scroll_cursor_visible()

    def _redo_batch(self, edits: Sequence[Edit]) -> None:
        self._replaying = True
        try:
            super()._redo_batch(edits)
        finally:
            self._replaying = False
        self.scroll_cursor_visible()

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, unless undo or redo is half done."""
        if self._replaying:
            return Offset()
        return super().scroll_cursor_visible(center, animate)
