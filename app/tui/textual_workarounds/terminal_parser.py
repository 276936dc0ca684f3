r"""`TerminalParser`: turns the bytes of a terminal into events; pasted text is only ever text.

Textual 8.2.8 reports the escape sequences inside a bracketed paste as keys, so that coloured text would
be sent and `ESC` with `^Q` would quit. It reports Alt+Enter (`ESC CR`) as `enter`, which sends, and
Shift+Enter in xterm's modifyOtherKeys form as `shift+\r`.

A terminal must remove the closing bracket from what it pastes, as all current ones do: nothing else
tells pasted text from keys.
"""

import time
from collections.abc import Callable, Iterable

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.keys import Keys
from textual.message import Message

from app.text.safe_text import safe_text

PASTE_TIMEOUT_S = 2.0
"""Seconds without input after which a paste without its closing bracket ends."""
_ALT_ENTER = ("\x1b\r", "\x1b\n")


class TerminalParser(XTermParser):
    """Textual's parser for everything outside of a paste.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, debug: bool = False, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(debug)
        self._clock = clock
        self._pasting = False
        self._pasted: list[str] = []
        self._recent = ""
        """The last characters, which may be the first part of a bracket."""
        self._last_input_at = 0.0

    @property
    def waits(self) -> float | None:
        """Seconds until an incomplete escape sequence is decided; None if there is none."""
        return (
            None if self._timeout_time is None else max(0.0, self._timeout_time - time.monotonic())
        )

    def feed(self, data: str) -> Iterable[Message]:
        """Events of more input; an empty string ends the input."""
        if not data:
            yield from self._end_paste()
            yield from super().feed(data)
            return
        self._last_input_at = self._clock()
        while data:
            if self._pasting:
                rest = self._find(END, data)
                if rest is None:
                    self._pasted.append(data)
                    return
                self._pasted.append(data[: len(data) - len(rest)])
                yield from self._end_paste(bracket=True)
            else:
                rest = self._find(START, data)
                if rest is None:
                    yield from super().feed(data)
                    return
                yield from super().feed(data[: len(data) - len(rest)])
                self._pasting = True
            data = rest

    def tick(self) -> Iterable[Message]:
        """Events due to the passing of time."""
        if self._pasting and self._clock() - self._last_input_at >= PASTE_TIMEOUT_S:
            yield from self._end_paste()
        yield from super().tick()

    def _find(self, bracket: str, data: str) -> str | None:
        """The part of `data` after the bracket, which may have begun in earlier data; None if absent."""
        before = len(self._recent)
        text = self._recent + data
        at = text.find(bracket)
        if at < 0:
            self._recent = text[-(len(bracket) - 1) :]
            return None
        self._recent = ""
        return text[max(before, at + len(bracket)) :]

    def _end_paste(self, *, bracket: bool = False) -> Iterable[Message]:
        if not self._pasting:
            return
        self._pasting, self._recent = False, ""
        text = "".join(self._pasted)
        self._pasted = []
        # Textual's parser has seen the opening bracket only: end its empty paste.
        list(super().feed(END))
        yield events.Paste(safe_text(text.removesuffix(END) if bracket else text))

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence in _ALT_ENTER:
            yield events.Key("alt+enter", None)
            return
        try:
            found = list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):  # a key code that is no character
            found = [events.Key(Keys.Ignore, sequence)]
        for event in found:
            yield events.Key("shift+enter", None) if event.key == "shift+\r" else event
