"""The real application without a terminal, driven by keys: what screenshots and the demo are made of."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual import events
from textual._compositor import visible_screen_stack  # type: ignore[attr-defined]
from textual.keys import _character_to_key
from textual.strip import Strip

from app.tui.app import PravahaApp
from app.tui.widgets.prompt import Prompt
from docs.screenshots.screen_svg import Colors, Palette, build_row, build_screenshot
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession

DEADLINE_S = 60.0
"""Seconds that one wait may take."""
_POLL_S = 0.02


class StepTimedOut(RuntimeError):
    """A wait took too long; the message has its name and the rows of the screen."""


@dataclass(frozen=True, slots=True)
class DrivenScreen:
    """A running screen.

    Keys are posted to the app, as in a replay. `Pilot.press` waits for a process without work instead: with a
    running engine, every key would take a second.
    """

    app: PravahaApp
    client: EngineClient
    session: TreeSession
    deadline_s: float = DEADLINE_S

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until `condition` holds.

        Raises:
            StepTimedOut: it did not within `deadline_s`.
        """
        deadline = time.monotonic() + self.deadline_s
        while not condition():
            if time.monotonic() > deadline:
                raise StepTimedOut(f"{what} did not come in {self.deadline_s:g} s:\n{self.text}")
            await asyncio.sleep(_POLL_S)

    async def press(self, *keys: str) -> None:
        """Press keys, characters or Textual's names, each after the effect of the one before."""
        for key in keys:
            character = key if len(key) == 1 else None
            name = _character_to_key(character) if character else key
            self.app.post_message(events.Key(name, character))
            await asyncio.sleep(_POLL_S)
            await self.until(lambda: not self.app.input_pending, f"the effect of {key}")

    async def type(self, text: str, *, pause_s: float) -> None:
        """Type into whatever has the focus, with a pause after each key."""
        for character in text:
            await self.press(character)
            await asyncio.sleep(pause_s)

    async def ask(self, text: str) -> None:
        """Send a message and wait for its answer."""
        await self.begin(text)
        await self.begun()
        await self.answered()

    async def begin(self, text: str) -> None:
        """Send a message."""
        prompt = self.app.screen_stack[0].query_one(Prompt)
        prompt.focus()
        prompt.text = text
        await self.press("enter")

    async def begun(self) -> None:
        """Wait until an answer is running."""
        await self.until(lambda: self.session.answers.generating, "the beginning of the answer")

    async def answered(self) -> None:
        """Wait until no answer is running."""
        await self.until(lambda: not self.session.answers.generating, "the end of the answer")

    async def running(self, *, words: int) -> None:
        """Wait until each running answer has so many words, or none is running."""
        view, session = self.session.view, self.session
        await self.until(
            lambda: all(len(view(one).text.split()) >= words for one in session.answers.running),
            f"{words} words of an answer",
        )

    async def gone(self, text: str) -> None:
        """Wait until the text is not on the screen."""
        await self.until(lambda: text not in self.text, f"the end of {text!r}")

    async def shows(self, *texts: str) -> None:
        """Wait until the texts are on the screen."""
        await self.until(lambda: all(text in self.text for text in texts), f"{texts} on the screen")

    async def still(self) -> None:
        """Wait for the drawing of what is known now.

        The frame clock does not sleep before the figure has blinked three times, which takes eight seconds.
        """
        self.app.draw_all()
        ticks = self.app.frame_clock.ticks
        await self.until(lambda: self.app.frame_clock.ticks > ticks + 1, "two ticks of the clock")

    @property
    def text(self) -> str:
        """The screen, row by row."""
        return "\n".join(strip.text.rstrip() for strip in self._strips())

    @property
    def colors(self) -> Colors:
        """The theme's colours for text and for what is behind it."""
        theme = self.app.current_theme
        return Colors(theme.foreground or "#ffffff", theme.background or "#000000")

    def rows(self, palette: Palette) -> tuple[tuple[str, ...], ...]:
        """The rows of the screen as elements of SVG, each in the parts that belong to one pane."""
        main = self.app.screen_stack[0]
        edges = {main.query_one(pane).region.x for pane in ("#center", "#side")} - {0}
        ends = [*sorted(edges), self.app.size.width]
        begins = [0, *ends[:-1]]
        return tuple(
            tuple(
                build_row(part, palette, self.colors, begin)
                for part, begin in zip(strip.divide(ends), begins, strict=True)
            )
            for strip in self._strips()
        )

    def screenshot(self, title: str) -> str:
        """The screen as SVG."""
        palette = Palette()
        rows = ["".join(parts) for parts in self.rows(palette)]
        return build_screenshot(rows, palette, self.app.size.width, self.colors, title=title)

    def _strips(self) -> list[Strip]:
        visible_screen_stack.set(self.app._background_screens)  # what a dialog is over
        return self.app.screen._compositor.render_strips()


@asynccontextmanager
async def driven(
    app: PravahaApp,
    client: EngineClient,
    session: TreeSession,
    size: tuple[int, int],
    *,
    deadline_s: float = DEADLINE_S,
) -> AsyncIterator[DrivenScreen]:
    """Run the app and wait for its first frame and its model.

    Args:
        size: columns and rows.
        deadline_s: seconds that one wait may take.
    """
    async with app.run_test(size=size, notifications=True):
        screen = DrivenScreen(app, client, session, deadline_s)
        await screen.until(lambda: client.snapshot().model is not None, "the model")
        await screen.still()
        yield screen
