"""How a widget that draws on the clock's ticks says that it was laid out anew."""

from textual.message import Message


class NeedsDrawing(Message):
    """Shown, or of another size: the app wakes its clock."""


class DrawnOnTicks:
    """Mixin of widgets whose content follows their size but is drawn by the frame clock alone.

    Without it a pane that is opened while the clock sleeps would stay empty: the wake-up that comes
    with the key is earlier than the layout.
    """

    def on_show(self) -> None:
        """Ask for a tick."""
        self.post_message(NeedsDrawing())  # type: ignore[attr-defined]  # mixed into widgets only

    def on_resize(self) -> None:
        """Ask for a tick."""
        self.post_message(NeedsDrawing())  # type: ignore[attr-defined]
