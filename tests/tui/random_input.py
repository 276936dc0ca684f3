"""Random input for the app over the fake engine: keys, clicks, pastes, commands, steps of the engine."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual import events
from textual.errors import NoWidget
from textual.geometry import Size

from app.tui.keys import ALL_KEYS
from engine.api.snapshot import EngineState
from tests.tui.harness import Harness

KEYS = sorted(
    {key for each in ALL_KEYS for key in each.keys.split(",")}
    | {
        "space",
        "backspace",
        "ctrl+w",
        "ctrl+u",
        "ctrl+a",
        "shift+up",
        "shift+left",
        "left",
        "right",
    }
    | {"ctrl+y", "ctrl+x", "f6", "f7", "tab", "n", "q", "/", "alt+enter", "ctrl+shift+left"}
)
PASTES = (
    "some words",
    "\n".join(f"line {number}" for number in range(40)),
    "/kv",
    "/new what now?",
    "日本語 नमस्ते 👩‍👩‍👧 e\u0301",
    "\t\t" * 50,
    "word " * 2000,
)
SIZES = ((120, 36), (160, 45), (90, 30), (60, 20), (39, 9), (20, 5), (200, 60), (80, 24))
TYPED = "hello, `code` **bold** /?\\"
COMMANDS = (
    "/model",
    "/model qwen3-0.6b",
    "/model huge-70b now",
    "/sampling",
    "/sampling temperature=0.7 top_k=3",
    "/sampling reset",
    "/system be brief",
    "/rename a [name]",
    "/regen",
    "/theme",
    "/keys",
)
QUESTION = "a question with an answer"
ANSWER = "an answer with **some** `words` and a list:\n\n- one\n- two"
CHARACTERS = {
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "question_mark": "?",
    "slash": "/",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "space": " ",
}
"""What the keys with a longer name type."""
ANSWERS_AHEAD = 3
"""Scripted answers for requests that are not made yet; one without never ends."""


class RandomUser:
    """Chooses events from a seed.

    Args:
        ui: the running screen.
        seed: of every choice.
    """

    def __init__(self, ui: Harness, seed: int) -> None:
        self._ui = ui
        self._random = random.Random(seed)
        self.log: list[str] = []

    async def act(self) -> None:
        """One event, or several at once."""
        choices: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (60, self._press),
            (12, self._type),
            (10, self._click),
            (3, self._scroll),
            (3, self._paste),
            (2, self._resize),
            (3, self._command),
            (3, self._ask),
            (10, self._step),
            (2, self._change_model),
        ]
        weights, acts = zip(*choices, strict=True)
        await self._random.choices(acts, weights)[0]()

    async def _press(self) -> None:
        for _ in range(self._random.choice((1, 1, 1, 2, 5))):
            self._post_key(self._random.choice(KEYS))

    async def _type(self) -> None:
        for character in self._random.sample(TYPED, 4):
            self._post_key(character)
        if self._random.random() < 0.5:
            self._post_key("enter")

    def _post_key(self, key: str) -> None:
        self.log.append(key)
        character = key if len(key) == 1 else CHARACTERS.get(key)
        self._ui.app.post_message(events.Key(key, character))

    async def _click(self) -> None:
        width, height = self._ui.app.size
        offset = (self._random.randrange(width), self._random.randrange(height))
        times = self._random.choice((1, 1, 2, 3))
        self.log.append(f"click {offset} {times}")
        with suppress(NoWidget):  # of Pilot: the screen has no layout yet
            await self._ui.pilot.click(offset=offset, times=times)

    async def _scroll(self) -> None:
        width, height = self._ui.app.size
        x, y = self._random.randrange(width), self._random.randrange(height)
        kind = self._random.choice((events.MouseScrollUp, events.MouseScrollDown))
        self.log.append(f"{kind.__name__} {x} {y}")
        self._ui.app.post_message(kind(None, x, y, 0, 0, 0, False, False, False, x, y))

    async def _paste(self) -> None:
        text = self._random.choice(PASTES)
        self.log.append(f"paste {text[:10]!r}")
        self._ui.app.post_message(events.Paste(text))

    async def _resize(self) -> None:
        size = self._random.choice(SIZES)
        self.log.append(f"resize {size}")
        self._ui.app.post_message(events.Resize(Size(*size), Size(*size)))
        await self._ui.pilot.resize_terminal(*size)

    async def _command(self) -> None:
        self._enter(self._random.choice(COMMANDS))

    async def _ask(self) -> None:
        """Send a message, whose answer then runs during the next events."""
        self._enter(f"{QUESTION} {self._random.randrange(1000)}")

    def _enter(self, text: str) -> None:
        """Enter text into the prompt, unless a dialog is open."""
        for key in ("f2", "ctrl+u"):
            self._post_key(key)
        self.log.append(f"paste {text!r}")
        self._ui.app.post_message(events.Paste(text))
        self._post_key("enter")

    async def _step(self) -> None:
        """Let the engine work and its clock and the screen's go on."""
        count = self._random.choice((1, 1, 3, 10))
        self.log.append(f"step {count}")
        client = self._ui.client
        while len(client.answers) < ANSWERS_AHEAD:
            client.answers.append(ANSWER * self._random.choice((1, 1, 20)))
        self._ui.clock.now += self._random.choice((0.02, 0.3, 2.0))
        client.step(count)

    async def _change_model(self) -> None:
        """Let the engine change its model, as far as it was asked to."""
        client = self._ui.client
        if client.state is EngineState.UNLOADED:
            self.log.append("load")
            client.load(1.0)
        elif client.next_model is not None:
            fails = self._random.random() < 0.3
            self.log.append(f"change of the model, {fails = }")
            if fails:
                client.fail_change("the file is damaged")
            else:
                client.finish_change()
