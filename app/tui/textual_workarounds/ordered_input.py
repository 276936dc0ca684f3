"""Handles keys and pastes strictly one after the other, each with the focus that the previous one left.

Textual 8.2.8 forwards a key to the widget that has the focus when the app sees it. The effect of an
earlier key, which may move the focus or open a dialog, comes later: the key is first handled by the
widget, then bubbles up to the app. Of the keys `i` and `remember`, read at once, the letters would run
`regenerate`, `stop` and other actions instead of being typed.

Every input event is therefore followed by an `InputHandled`, which takes the same way through the same
queues, first behind the event, then behind the messages that it caused; the next event is forwarded when
that arrives at the app. An event whose widget was removed or is busy for `PATIENCE_S` does not block those
after it.
"""

import asyncio
from collections import deque
from typing import Any

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

PATIENCE_S = 1.0
"""Maximum time between two input events."""
_ROUNDS = 2
"""A key, and a message that its action posted, such as the choice in a list."""
_MAX_WAITS = 8
"""Maximum number of refreshes to wait for until the screen has settled."""


class InputHandled(Message):
    """Arrives at the app after the input event that it follows.

    Attributes:
        number: of the event.
        target: the widget that got the event; None if the app handled it.
        rounds: how often it is to take this way again.
    """

    def __init__(self, number: int, target: Widget | None = None, rounds: int = 0) -> None:
        super().__init__()
        self.number = number
        self.target = target
        self.rounds = rounds


class OrderedInput(App[None]):
    """Mixin of the app; see the module's description."""

    def __init__(self, **options: Any) -> None:
        self._waiting_input: deque[events.Key | events.Paste] = deque()
        self._input_number = 0
        self._input_in_flight = False
        self._input_waits = 0
        self._input_screen: Screen[Any] | None = None
        self._input_deadline: asyncio.TimerHandle | None = None
        super().__init__(**options)

    @property
    def input_pending(self) -> bool:
        """Whether a key or paste is not handled completely."""
        return self._input_in_flight

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pastes from the terminal; everything else as Textual does."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._waiting_input.append(event)
            if not self._input_in_flight:
                await self._forward_next_input()
        else:
            await super().on_event(event)

    async def on_input_handled(self, message: InputHandled) -> None:
        """Forward the next event."""
        message.stop()
        if not self._input_in_flight or message.number != self._input_number:
            return
        if message.rounds:
            self._follow(message.number, message.target, message.rounds - 1)
        else:
            await self._forward_next_input()

    def _follow(self, number: int, target: Widget | None, rounds: int) -> None:
        follower = InputHandled(number, target, rounds)
        if target is None or not target.post_message(follower):
            self.post_message(InputHandled(number, None, rounds))

    async def _forward_next_input(self) -> None:
        """Forward one event; must run in the app's own task."""
        self._input_in_flight = False
        if self._input_deadline is not None:
            self._input_deadline.cancel()
        if not self._running:  # the app ends: it may have no screen
            self._waiting_input.clear()
        if not self._waiting_input:
            return
        self._input_in_flight = True
        self._input_number += 1
        number = self._input_number
        self._input_deadline = asyncio.get_running_loop().call_later(
            PATIENCE_S, self._give_up_input, number
        )
        if not self._has_settled() and self._input_waits < _MAX_WAITS:
            self._input_waits += 1
            self.call_after_refresh(self.post_message, InputHandled(number))
            return
        self._input_waits = 0
        self._input_screen = self.screen
        event = self._waiting_input.popleft()
        target = self.focused or self.screen
        try:
            await super().on_event(event)
        finally:
            self._follow(number, target if event.is_forwarded else None, _ROUNDS - 1)

    def _has_settled(self) -> bool:
        """Whether the previous event's effects on the focus are complete."""
        screen = self.screen
        if screen._callbacks:  # some of our actions move the focus after the next refresh
            return False
        # A new screen gives the focus to one of its widgets with its first messages.
        return screen is self._input_screen or (
            screen._is_mounted and screen._message_queue.empty()
        )

    def _give_up_input(self, number: int) -> None:
        if self._input_in_flight and number == self._input_number:
            self.post_message(InputHandled(number))
