"""A screen whose widgets are styled once when it is opened.

Textual 8.2.8 applies the style sheet to every widget that is mounted, again to all of them when the screen is
shown, and a third time at its first resize, when the screen gets the classes of its size: 35 ms.
"""

from textual import events
from textual.screen import Screen


class StyledOnce(Screen[None]):
    """Mixin of the app's first screen. It has the classes of its size before it has widgets."""

    def add_breakpoint_classes(self) -> None:
        """Set the classes for the app's size."""
        width, height = self.app.size
        for size, breakpoints in (
            (width, self.app.HORIZONTAL_BREAKPOINTS),
            (height, self.app.VERTICAL_BREAKPOINTS),
        ):
            self.add_class(*self._get_breakpoint_classes(size, breakpoints or []), update=False)

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        if not self.stack_updates:  # shown for the first time
            event.refresh_styles = False
