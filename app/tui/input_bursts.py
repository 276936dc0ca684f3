"""`InputBursts`: tells pasted text from typed keys, where the terminal does not mark a paste.

GNU screen, serial consoles and `tmux paste-buffer` send pasted text as if it were typed, with an enter at the
end of each line. Nobody types that fast: characters that come within `BURST_S` of each other are a burst.

* A line break with more text behind it in the same burst is pasted, and so is the rest of the burst, its
  last line break too. It breaks the line.
* A line break at the end of a burst of one line is an enter, as a program sends it that types a command. It
  is known only when the burst is over, so this enter is delayed by `BURST_S`.
* An enter that is no part of a burst, as a person presses it, is passed on at once.
* A single line is pasted text if it has a tab between characters, or several words and `MIN_TEXT`
  characters. All others are keys: over a slow connection, the keys of a person come together too.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

BURST_S = 0.04
"""Most seconds between two characters of a burst. Fingers are slower; a serial line of 300 baud, and the
packets of its adapters every 16 ms, are faster."""
MIN_TEXT = 16
_CR_AND_LFS = re.compile(r"\r\n?(\n*)")
_GOES_ON = re.compile(r"[\r\n][^\r\n]")
_TAB_BETWEEN = re.compile(r"[^\t]\t+[^\t]")


class InputPiece(NamedTuple):
    """A part of the input; text that was pasted, or keys."""

    text: str
    pasted: bool


class InputBursts:
    """Splits the input of a terminal, without its control sequences.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_at = float("-inf")
        """When the last character of the burst came."""
        self._last = ""
        """That character."""
        self._held = ""
        """Line breaks at the end of the burst."""
        self._pasted = False
        """Whether the burst has several lines."""

    @property
    def waits(self) -> float | None:
        """Seconds until `tick` has something; None if it waits for nothing."""
        return max(0.0, self._last_at + BURST_S - self._clock()) if self._held else None

    def feed(self, text: str) -> list[InputPiece]:
        """What came at once: printable characters, tabs and line breaks."""
        now = self._clock()
        pieces = [] if now - self._last_at < BURST_S else self.end()
        if self._last == "\r" and text.startswith("\n"):
            text, self._last = text[1:], "\n"  # CR and LF are one line break
        if not text:
            return pieces
        self._last = text[-1]
        text = _behind(self._held, text)
        if self._pasted or _GOES_ON.search(self._held + text):
            pieces.append(InputPiece(self._held + text, pasted=True))
            self._held, self._pasted, self._last_at = "", True, now
            return pieces
        line = text.rstrip("\r\n")
        if line:
            pieces.append(InputPiece(line, pasted=_is_text(line)))
        breaks = _single_breaks(text[len(line) :])
        in_burst = bool(line) or self._last_at > float("-inf")
        if breaks and not in_burst:
            pieces.append(InputPiece(breaks, pasted=False))
        elif in_burst:
            self._held += breaks
            self._last_at = now
        return pieces

    def tick(self) -> list[InputPiece]:
        """The enter at the end of a burst that is over."""
        return self.end() if self._held and self._clock() - self._last_at >= BURST_S else []

    def end(self) -> list[InputPiece]:
        """End the burst, because another key was pressed; the enter at its end."""
        held, self._held, self._pasted = self._held, "", False
        self._last_at, self._last = float("-inf"), ""
        return [InputPiece(held, pasted=False)] if held else []


def _single_breaks(text: str) -> str:
    """Line breaks with CR for CR and LF; a further LF is CR, too, so that they are not taken for one."""
    return _CR_AND_LFS.sub(lambda found: "\r" * (1 + len(found[1])), text)


def _behind(before: str, text: str) -> str:
    """A text whose LFs do not look like the end of a CR before it: they are CRs."""
    others = text.lstrip("\n")
    return "\r" * (len(text) - len(others)) + others if before.endswith("\r") else text


def _is_text(line: str) -> bool:
    words = len(line) >= MIN_TEXT and " " in line.strip()
    return words or _TAB_BETWEEN.search(line) is not None
