"""`MouseDriver`: reporting of the mouse that can be switched; Textual 8.2.8 decides it at the start."""

from textual.driver import Driver


class MouseDriver(Driver):
    """Base of our drivers, after Textual's, which write the control sequences."""

    def report_mouse(self, on: bool) -> None:
        """Let the terminal report the mouse, or leave it to the terminal's own selection of text."""
        if on:
            self._mouse = True
            self._enable_mouse_support()
        else:
            self._disable_mouse_support()
            self._mouse = False

    def _enable_mouse_support(self) -> None:
        raise NotImplementedError

    def _disable_mouse_support(self) -> None:
        raise NotImplementedError
