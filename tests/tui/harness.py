"""The screen over a fake engine and a real store: what Pilot and snapshot tests share."""

import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from textual.pilot import Pilot

from app.tui.app import PravahaApp
from app.tui.frame_clock import Governor
from app.tui.widgets.message import Message
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.transcript import Transcript
from engine.clients.model_set import ModelSet
from engine.clients.several_models_client import SeveralModelsClient
from engine.conversations.chat_tools import ToolSource
from engine.conversations.passage_source import PassageSource
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.text_guard import TextGuard
from tests.fakes.fake_client import FakeClient

DEADLINE_S = 60.0
POLL_S = 0.005
"""Seconds between two looks at what a thread or a timer brings."""
TICK_HZ = 200.0
"""Rate of the frame clock: no test waits long for a tick."""
EPOCH = 1_700_000_000.0
"""Wall clock of the first node, 2023-11-14 22:13:20 UTC; each later one is a minute younger."""
NOW = EPOCH + 3600.0
"""Wall clock of the screen, which dates the conversation list."""


@dataclass
class Clock:
    """Monotonic seconds that stand still until a test moves them."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@cache
def empty_database() -> bytes:
    """The file of a store without conversations: copying it is quicker than creating the tables."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.db"
        Store.open(path).close()
        return path.read_bytes()


def make_session(
    client: FakeClient,
    folder: Path,
    clock: Clock,
    guard: TextGuard | None = None,
    passages: PassageSource | None = None,
    tools: ToolSource | None = None,
    models: ModelSet | None = None,
) -> tuple[TreeSession, Store]:
    """A session over a store in `folder`; ids and dates are the same in every run."""
    numbers = itertools.count()
    path = folder / "conversations.db"
    if not path.exists():
        path.write_bytes(empty_database())
    store = Store.open(path)
    session = TreeSession(
        store,
        client,
        clock=clock,
        wall=(EPOCH + 60.0 * minute for minute in itertools.count()).__next__,
        new_id=lambda: f"{next(numbers):026d}",
        stop_repetition=False,  # the texts of tests repeat their words
        guard=guard,
        passages=passages,
        tools=tools,
        models=models,
    )
    return session, store


def make_app(client: FakeClient, session: TreeSession, clock: Clock, **options) -> PravahaApp:
    """The app with fixed clocks and version."""
    options.setdefault("version", "0.0.0")
    app = PravahaApp(client, session, clock=clock, wall_clock=lambda: NOW, **options)
    app.frame_clock.governor = Governor(full_hz=TICK_HZ)
    return app


@dataclass
class Harness:
    """A running screen."""

    app: PravahaApp
    pilot: Pilot
    client: FakeClient
    session: TreeSession
    clock: Clock

    async def until(self, condition: Callable[[], object], what: str = "the condition") -> None:
        """Let the app work until `condition` holds."""
        await self.pilot.pause()
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come:\n{self.text}"
            await self.pilot.pause(POLL_S)

    async def shown(self, *words: str) -> None:
        """Wait until all of `words` are on the screen."""

        def visible() -> bool:
            text = self.text  # rendered at each look
            return all(word in text for word in words)

        await self.until(visible, repr(words))

    async def gone(self, word: str) -> None:
        """Wait until `word` is not on the screen."""
        await self.until(lambda: word not in self.text, f"the end of {word!r}")

    async def press(self, *keys: str) -> None:
        """Press keys, each when the effect of the last is complete and drawn."""
        for key in keys:
            ticks = self.app.frame_clock.ticks
            await self.pilot.press(key)
            await self.until(partial(self._took_effect, ticks), "the effect of a key")

    def _took_effect(self, ticks: int) -> bool:
        """Whether no key is pending and the clock sleeps or has ticked since it had so many ticks."""
        clock = self.app.frame_clock
        drawn = clock.sleeping or clock.ticks > ticks or clock.governor.hz < 1  # stopped by a test
        return not self.app.is_running or (drawn and not self.app.input_pending)

    async def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        await self.press(*(_KEYS.get(letter, letter) for letter in text))

    async def ask(self, text: str) -> None:
        """Put a message into the prompt and send it."""
        self.prompt.focus()
        self.prompt.text = text
        await self.press("enter")

    async def answered(self) -> None:
        """Run the engine until every scripted answer has ended and is drawn."""
        self.client.finish()
        await self.until(lambda: not self.session.answers.generating, "the end of the answer")
        await self.settled()

    async def settled(self) -> None:
        """Wait until the frame clock sleeps: all that is known is drawn."""
        await self.until(
            lambda: self.app.frame_clock.sleeping and not self.app.actions.listing.busy, "sleep"
        )

    @property
    def text(self) -> str:
        """The screen, row by row."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def prompt(self) -> Prompt:
        """The prompt."""
        return self.app.screen_stack[0].query_one(Prompt)

    @property
    def transcript(self) -> Transcript:
        """The open conversation."""
        return self.app.screen_stack[0].query_one(Transcript)

    @property
    def last(self) -> Message:
        """The newest mounted message."""
        return self.transcript.messages[-1]

    @property
    def toasts(self) -> list[str]:
        """Messages of all visible notifications."""
        return [notification.message for notification in self.app._notifications]


_KEYS = {
    " ": "space",
    "/": "slash",
    "?": "question_mark",
    ".": "full_stop",
    "\\": "backslash",
    "`": "grave_accent",
}


@asynccontextmanager
async def open_screen(
    folder: Path,
    *answers: str | Iterable[str],
    client: FakeClient | None = None,
    size: tuple[int, int] = (120, 36),
    prepare: Callable[[TreeSession, FakeClient], object] = lambda session, client: None,
    guard: TextGuard | None = None,
    models: ModelSet | None = None,
    **options,
) -> AsyncIterator[Harness]:
    """Open the app and wait for its first frame.

    Args:
        answers: as `FakeClient` takes them.
        prepare: fills the session before the app opens.
        guard: of the session.
        models: of the session, if there are several; the client then follows that of the open branch.
        options: of the app; `sources` and `chat_tools` are the session's, too.
    """
    several = None if models is None else SeveralModelsClient(models)
    client = several or client or FakeClient(*answers)
    clock = Clock()
    session, store = make_session(
        client, folder, clock, guard, options.get("sources"), options.get("chat_tools"), models
    )
    if several is not None:
        several.follow(lambda: session.model.current)
    try:
        prepare(session, client)
        app = make_app(client, session, clock, **options)
        async with app.run_test(size=size, notifications=True) as pilot:
            harness = Harness(app, pilot, client, session, clock)
            await harness.until(lambda: app.frame_clock.ticks > 0, "the first tick")
            await harness.until(lambda: not app.actions.listing.busy, "the list of conversations")
            yield harness
            await pilot.pause()  # what still runs would miss the widgets that are removed
        # The app survives exceptions; a test does not, unless it took them from the list.
        for failure in app.failures.first:
            raise failure
    finally:
        session.close()
        store.close()


def converse(session: TreeSession, client: FakeClient, *turns: tuple[str, str]) -> None:
    """Have conversations before the screen opens."""
    for question, answer in turns:
        client.answers.appendleft(answer)
        session.messages.send(question)
        client.finish()
        session.pump()
