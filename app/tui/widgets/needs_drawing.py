"""The message by which a widget requests a tick of the frame clock after a layout."""

from textual.message import Message


class NeedsDrawing(Message):
    """A widget was shown or resized; the app wakes the frame clock."""


class DrawnOnTicks:
    """Mixin of widgets whose content depends on their size and is drawn only by the frame clock.

    A pane that is opened while the clock sleeps would otherwise remain empty, because the clock is woken
    by the key and ticks before the layout.
    """

    def on_show(self) -> None:
        """Request a tick."""
        self.post_message(NeedsDrawing())  # type: ignore[attr-defined]  # mixed into widgets only

    def on_resize(self) -> None:
        """Request a tick."""
        self.post_message(NeedsDrawing())  # type: ignore[attr-defined]
