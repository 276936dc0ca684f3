"""Input events of a recording: keys, pastes and the mouse, as JSON and back; and their replay."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from textual import events
from textual.message import Message

from engine.api.errors import InvalidRequest

log = logging.getLogger(__name__)

_MOUSE: dict[str, type[events.MouseEvent]] = {
    kind.__name__: kind
    for kind in (
        events.MouseDown, events.MouseUp, events.MouseMove, events.MouseScrollDown,
        events.MouseScrollUp,
    )
}  # fmt: skip
_POLL_S = 0.02
_PATIENCE_POLLS = 100
"""An event waits at most so many polls for what was drained before it."""
PAUSE, FINISH = "space", ("q", "ctrl+c", "ctrl+q")
"""Keys of a replay: pause or go on, and end."""


class Replayed(Protocol):
    """The app that gets the events of a replay."""

    def post_message(self, message: Message) -> bool:
        """Handle an event as if it came from the terminal; whether it will be handled."""
        ...

    def wake(self) -> None:
        """Draw what was drained."""
        ...

    def exit(self) -> None:
        """End the app."""
        ...


class InputTap(Protocol):
    """Sees every input event before the app handles it."""

    def let_through(self, event: events.Event) -> bool:
        """Whether the app may handle the event."""
        ...


def is_input(event: events.Event) -> bool:
    """Whether the event comes from the terminal."""
    return isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded


def to_json(event: events.Event) -> list[Any] | None:
    """The event as JSON; None for events that are not recorded."""
    if isinstance(event, events.Key):
        return ["key", event.key, event.character]
    if isinstance(event, events.Paste):
        return ["paste", event.text]
    if isinstance(event, events.MouseEvent) and type(event).__name__ in _MOUSE:
        keys = (event.shift, event.meta, event.ctrl)
        place = [event.x, event.y, event.delta_x, event.delta_y, event.button]
        return ["mouse", type(event).__name__, *place, *keys]
    return None


def from_json(values: Sequence[Any]) -> events.Event:
    """The event of `to_json`.

    Raises:
        InvalidRequest: it is not one.
    """
    try:
        match values:
            case ["key", str(key), (str() | None) as character]:
                return events.Key(key, character)
            case ["paste", str(text)]:
                return events.Paste(text)
            case ["mouse", str(kind), *place, bool(shift), bool(meta), bool(ctrl)]:
                x, y, delta_x, delta_y, button = (int(one) for one in place)
                return _MOUSE[kind](None, x, y, delta_x, delta_y, button, shift, meta, ctrl)
    except (KeyError, TypeError, ValueError):
        pass
    raise InvalidRequest(f"The recording has an input event that is none: {list(values)!r:.80}.")


class InputRecorder:
    """An `InputTap` that passes every event on and writes it down.

    Args:
        write: called with the JSON of an event.
    """

    def __init__(self, write: Callable[[Any], None]) -> None:
        self._write = write

    def let_through(self, event: events.Event) -> bool:
        """Write the event; the app handles it too."""
        data = to_json(event)
        if data is not None:
            self._write(data)
        return True


class ReplayClock:
    """Seconds of a recording that are played; can be paused.

    Args:
        clock: monotonic seconds.
        speed: recorded seconds per second.
    """

    def __init__(self, clock: Callable[[], float], *, speed: float = 1.0) -> None:
        self._clock = clock
        self._speed = speed
        self._played = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        """The seconds played."""
        if self._since is None:
            return self._played
        return self._played + (self._clock() - self._since) * self._speed

    def run(self) -> None:
        """Start or go on."""
        if self._since is None:
            self._since = self._clock()

    def toggle(self) -> None:
        """Pause, or go on."""
        if self._since is None:
            self.run()
        else:
            self._played, self._since = self(), None


class InputReplayer:
    """An `InputTap` that plays recorded events; the user's own keys only pause and end the replay.

    Args:
        inputs: (seconds, event) in the order of time.
        clock: the seconds that are played.
        duration: when the replay ends.
        is_drained: whether what was drained before so many seconds has been; an event waits for it, since
            what a key does depends on whether an answer runs.
        ends: end the app with the replay.
    """

    def __init__(
        self,
        inputs: Sequence[tuple[float, events.Event]],
        clock: ReplayClock,
        *,
        duration: float,
        is_drained: Callable[[float], bool],
        ends: bool = False,
    ) -> None:
        self._inputs = inputs
        self._clock = clock
        self._is_drained = is_drained
        self._duration = duration
        self._ends = ends
        self._own: list[events.Event] = []
        self._app: Replayed | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, app: Replayed) -> None:
        """Begin playing; called when the screen is drawn."""
        self._app = app
        self._clock.run()
        self._task = asyncio.get_running_loop().create_task(self._play(app), name="replay")

    def let_through(self, event: events.Event) -> bool:
        """Whether it is an event of the recording."""
        for index, own in enumerate(self._own):
            if own is event:
                del self._own[index]
                return True
        if isinstance(event, events.Key) and self._app is not None:
            if event.key == PAUSE:
                self._clock.toggle()
            elif event.key in FINISH:
                self._app.exit()
        return False

    async def _play(self, app: Replayed) -> None:
        for time, event in self._inputs:
            while self._clock() < time:
                app.wake()
                await asyncio.sleep(_POLL_S)
            for _ in range(_PATIENCE_POLLS):
                if self._is_drained(time):
                    break
                app.wake()
                await asyncio.sleep(_POLL_S)
            self._own.append(event)
            app.post_message(event)
        while self._clock() < self._duration:
            app.wake()
            await asyncio.sleep(_POLL_S)
        if self._ends:
            app.exit()
