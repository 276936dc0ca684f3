"""Widgets that are drawn on ticks of the frame clock, and the message by which they request one."""

from textual.message import Message
from textual.widget import Widget


class NeedsDrawing(Message):
    """A widget was shown or resized; the app wakes the frame clock."""


class DrawnOnTicks:
    """Mixin of widgets whose content depends on their size and is drawn only by the frame clock.

    A pane that is opened while the clock sleeps would otherwise remain empty, because the clock is woken
    by the key and ticks before the layout.
    """

    @property
    def in_view(self) -> bool:
        """Whether the widget and all its ancestors are displayed and it has a size."""
        widget: Widget = self  # type: ignore[assignment]  # mixed into widgets only
        return (
            widget.is_on_screen
            and widget.size.area > 0
            and all(getattr(one, "display", True) for one in widget.ancestors_with_self)
        )

    def on_show(self) -> None:
        """Request a tick."""
        self.post_message(NeedsDrawing())  # type: ignore[attr-defined]  # mixed into widgets only

    def on_resize(self) -> None:
        """Request a tick."""
        self.post_message(NeedsDrawing())  # type: ignore[attr-defined]
