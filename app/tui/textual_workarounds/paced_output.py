"""Frames that are drawn only when the terminal has taken the last one, and only in the cells that changed.

Textual 8.2.8 puts every frame into a queue of thirty writes and blocks its event loop when that is full: on a
slow link, the effect of a key appears after all frames before it.
"""

from collections.abc import Iterable
from typing import IO, Any

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput
from textual.screen import Screen

from app.tui.output.output_pace import OutputPace
from app.tui.output.terminal_image import Run, TerminalImage
from app.tui.textual_workarounds.terminal_driver import TerminalDriver

QUESTION = "\x1b[?2026$p"
"""Asks whether the terminal supports synchronized output; terminals answer in the order of their input."""


class CountedFile:
    """The terminal as a file, whose written bytes are counted. Used by Textual's writer thread."""

    def __init__(self, file: IO[str], pace: OutputPace) -> None:
        self._file = file
        self._pace = pace
        self._unflushed = 0

    def fileno(self) -> int:
        """The descriptor of the terminal."""
        return self._file.fileno()

    def write(self, text: str) -> None:
        """Write text; blocks while the terminal takes no more."""
        self._unflushed += len(text.encode(errors="replace"))
        self._file.write(text)

    def flush(self) -> None:
        """Write what is buffered, and count it."""
        self._file.flush()
        size, self._unflushed = self._unflushed, 0
        self._pace.wrote(size)


class PacedDriver(TerminalDriver):
    """Textual's driver for terminals, which tells the app's `OutputPace` what happens to its output."""

    def __init__(self, app: "PacedOutput", **options: Any) -> None:
        super().__init__(app, **options)
        self._pace: OutputPace = app.pace
        # Textual's writer thread calls these methods of a file only.
        self._file = CountedFile(self._file, self._pace)  # type: ignore[assignment,arg-type]

    def write(self, data: str) -> None:
        """Hand data to the writer thread."""
        self._pace.queued(len(data.encode(errors="replace")))
        super().write(data)

    def process_message(self, message: Message) -> None:
        """As `Driver.process_message`; an answer to `QUESTION` is also counted."""
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            first = not self._pace.answers
            self._pace.answered()
            if not first:
                return
        super().process_message(message)


class PacedOutput(App[None]):
    """Mixin of apps whose frames wait for the terminal. `MainScreen` does not render them meanwhile."""

    pace: OutputPace

    def __init__(self, **options: Any) -> None:
        self.pace = OutputPace()
        self._image = TerminalImage()
        self._undrawn: Screen[Any] | None = None
        super().__init__(**options)
        self.pace.on_progress(self._progressed)

    def get_driver_class(self) -> type[Driver]:
        """Our drivers in place of Textual's for terminals and browsers."""
        found = super().get_driver_class()
        if found.__name__ == "WebDriver":
            from app.tui.textual_workarounds.browser_driver import BrowserDriver

            return BrowserDriver
        return PacedDriver if found is LinuxDriver else found

    def defer_drawing(self, screen: Screen[Any]) -> None:
        """Draw `screen` when the terminal has taken what was written."""
        self._undrawn = screen
        self.on_deferred()

    def on_deferred(self) -> None:
        """Called when drawing was deferred: `draw_deferred` must be called periodically."""

    def draw_deferred(self) -> bool:
        """Draw what was deferred, unless it must wait further; whether it must."""
        if self._undrawn is None:
            return False
        if self.pace.congested:
            return True
        screen, self._undrawn = self._undrawn, None
        if screen is self.screen:
            draw = getattr(screen, "draw_deferred", screen.refresh)
            draw()
        return False

    def _progressed(self) -> None:
        # Called by the threads of input and output.
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._continue_drawing)

    def _continue_drawing(self) -> None:
        # Called in the context of a thread, in which Textual's context variables are not set.
        with self._context():
            self._ask()
            self.draw_deferred()

    def _ask(self) -> None:
        """Ask whether the last frame was read, unless a question is open."""
        driver = self._driver
        if driver is not None and self._running and self.pace.ask(len(QUESTION)):
            driver.write(QUESTION)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if isinstance(renderable, LayoutUpdate | ChopsUpdate) and not self.is_inline:
            if self.pace.congested:
                self.defer_drawing(screen)
                return
            if isinstance(renderable, LayoutUpdate):
                self._image.clear()
            changed: Any = _ChangedCells(renderable, self._image)  # Textual renders it itself
            super()._display(screen, changed)
        else:
            super()._display(screen, renderable)
        self._ask()


class _ChangedCells(CompositorUpdate):
    """The cells of Textual's update that differ from what the terminal shows."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, image: TerminalImage) -> None:
        self._update = update
        self._image = image

    def render_segments(self, console: Console) -> str:
        """The sequences to write."""
        colors = console._color_system or ColorSystem.TRUECOLOR
        return self._image.update(_runs(self._update), colors)


def _runs(update: LayoutUpdate | ChopsUpdate) -> Iterable[Run]:
    """The strips that the update would write, as `render_segments` of Textual divides them."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, begin, stop in update.spans:
        for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if chop is None or x > stop or end <= begin:
                continue
            inside = begin <= x < stop and end <= stop
            yield y, x, chop if inside else chop.crop(0, min(end, stop) - x)
