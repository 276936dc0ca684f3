r"""`TerminalParser`: turns the bytes of a terminal into events; pasted text is only ever text.

Textual 8.2.8 reports the escape sequences inside a bracketed paste as keys, so that coloured text would
be sent and `ESC` with `^Q` would quit. It reports Alt+Enter (`ESC CR`) as `enter`, which sends, and
Shift+Enter in xterm's modifyOtherKeys form as `shift+\r`.

A terminal must remove the closing bracket from what it pastes, as all current ones do: nothing else
tells pasted text from keys. Text that is pasted without brackets is recognised by `InputBursts`.
"""

import re
import time
from collections.abc import Callable, Iterable

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.keys import Keys
from textual.message import Message

from app.text.safe_text import safe_text
from app.tui.input_bursts import InputBursts, InputPiece

PASTE_TIMEOUT_S = 2.0
"""Seconds without input after which a paste without its closing bracket ends."""
_ALT_ENTER = ("\x1b\r", "\x1b\n")
_TYPED = re.compile("[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
"""Printable characters, tabs and line breaks."""


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
        self._bursts = InputBursts(clock)

    @property
    def waits(self) -> float | None:
        """Seconds until an incomplete escape sequence or an enter is decided; None if there is none."""
        decided = (
            None if self._timeout_time is None else max(0.0, self._timeout_time - time.monotonic())
        )
        return min((one for one in (decided, self._bursts.waits) if one is not None), default=None)

    def feed(self, data: str) -> Iterable[Message]:
        """Events of more input; an empty string ends the input."""
        if not data:
            yield from self._end_paste()
            yield from self._events(self._bursts.end())
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
                yield from self._feed_typed(data if rest is None else data[: -len(rest) or None])
                if rest is None:
                    return
                self._pasting = True
            data = rest

    def tick(self) -> Iterable[Message]:
        """Events due to the passing of time."""
        if self._pasting and self._clock() - self._last_input_at >= PASTE_TIMEOUT_S:
            yield from self._end_paste()
        yield from self._events(self._bursts.tick())
        yield from super().tick()

    def _feed_typed(self, data: str) -> Iterable[Message]:
        """Events of input outside of brackets."""
        at = 0
        while at < len(data):
            in_sequence = self._timeout_time is not None
            typed = None if in_sequence else _TYPED.match(data, at)
            if typed is not None:
                yield from self._events(self._bursts.feed(typed[0]))
                at = typed.end()
                continue
            found = list(super().feed(data[at]))
            if any(isinstance(event, events.Key) for event in found):
                yield from self._events(self._bursts.end())
            yield from found
            at += 1

    def _events(self, pieces: Iterable[InputPiece]) -> Iterable[Message]:
        for piece in pieces:
            if piece.pasted:
                yield events.Paste(safe_text(piece.text))
            else:
                yield from super().feed(piece.text)

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
