"""`HeldMessage`: a message that stays in the prompt, and so in the draft, until its files are read.

It is sent then, unless it was changed or Esc was pressed.
"""

from asyncio import Future as AsyncFuture
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from app.text.safe_text import safe_line
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.widgets.prompt import Prompt
from engine.api.errors import PravahaError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """The message as it was typed, the conversation of its draft, and the texts that are being read."""

    typed: str
    tree_id: str
    texts: Sequence[Future[Any] | AsyncFuture[Any]]


class HeldMessage:
    """Holds one message at a time."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._reading: _Reading | None = None

    @property
    def waits(self) -> bool:
        """Whether a message is held."""
        return self._reading is not None

    def hold(
        self,
        typed: str,
        names: Iterable[str],
        texts: Sequence[Future[Any] | AsyncFuture[Any]],
        *,
        read: Callable[[], Awaitable[T]],
        send: Callable[[T], Awaitable[None]],
    ) -> None:
        """Hold a message while its files are read, and send it then.

        Args:
            typed: the message as it was typed.
            names: of the files.
            texts: what is being read; cancelled if the message is not sent.
            read: waits for them. An error that it raises leaves the message in the prompt.
            send: sends what `read` returned; the message is not held any more.
        """
        self.cancel()
        reading = _Reading(typed, self._screen.session.tree_id, texts)
        self._prompt.hold(typed, f"reading {', '.join(map(safe_line, names))}")
        self._reading = reading

        async def send_when_read() -> None:
            try:
                found = await read()
            except PravahaError as error:
                if self._reading is reading:
                    self._end()
                    self._screen.notify_safely(str(error), "error")
                return
            if self._reading is not reading:
                return
            self._end()
            if self._screen.session.tree_id == reading.tree_id:  # else it is that one's draft
                await guarded(self._screen, send(found))

        self._screen.run_worker(send_when_read(), group="held", exit_on_error=False)

    def text_changed(self, text: str) -> None:
        """The text in the prompt is `text` now; a message that was changed is not sent."""
        if self._reading is not None and text != self._reading.typed:
            self.cancel()

    def cancel(self) -> None:
        """Leave the message in the prompt, unsent."""
        reading = self._end()
        for one in () if reading is None else reading.texts:
            one.cancel()

    def _end(self) -> _Reading | None:
        """The reading, which is over."""
        reading, self._reading = self._reading, None
        if reading is not None:
            self._prompt.release()
        return reading

    @property
    def _prompt(self) -> Prompt:
        return self._screen.main.query_one(Prompt)
