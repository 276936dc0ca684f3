"""`StopScanner`: finds the first stop string in text that arrives in pieces.

Stop strings are looked for in two texts: the visible one, and the one that also has the control tokens,
as they are spelled. So a stop string may be, contain or continue a control token, although the answer
never shows one, and a control token between two words does not hide a stop string that they form.

Cost: O(stop strings that the text ends with a prefix of) for each character, none for most. Text is held
back only while it may still become a stop string, so at most the length of the longest one. Half a
character before a control token is read after it.
"""

from collections import deque
from collections.abc import Sequence
from typing import Self


class StopScanner:
    """Scans one answer. The result does not depend on how its text is divided into pieces.

    Attributes:
        found: the stop string that was found; None before.
    """

    def __init__(self, stops: Sequence[str], *, include_stop: bool) -> None:
        """Look for `stops`; with `include_stop`, the one that is found is part of the text."""
        self._include_stop = include_stop
        self._longest = max(map(len, stops), default=0)
        self._visible = _PrefixTracker(stops)
        # None until the first control token: the two texts are equal before it.
        self._spelled: _PrefixTracker | None = None
        self._visible_before: deque[int] = deque()
        """For each of the last characters of the spelled text: visible characters before it."""
        self._length = 0  # visible characters so far
        self._held = ""  # the last of them, which were not returned yet
        self._num_inherited = 0  # leading characters of `_held` that are not to be returned
        self.found: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self.found is not None

    def resume_after(self, pieces: Sequence[tuple[str, bool]]) -> None:
        """Continue after (text, is visible) pieces, not returned; a stop string may start in them."""
        for text, visible in pieces:
            if not visible:
                self._spell_out()
            for character in text:
                self._advance(character, visible=visible)
        self._release()
        self._num_inherited = len(self._held)

    def feed(self, text: str) -> str:
        """The text that precedes any possible stop string; empty after a stop string was found."""
        return self._feed(text, visible=True)

    def feed_hidden(self, spelling: str) -> str:
        """As `feed`, for a control token, which is not part of the text."""
        if not spelling:
            return ""
        self._spell_out()
        return self._feed(spelling, visible=False)

    def flush(self) -> str:
        """The text that was held back as a possible stop string."""
        held, self._held = self._held, ""
        return self._drop_inherited(held)

    def _feed(self, text: str, *, visible: bool) -> str:
        if self.stopped:
            return ""
        for character in text:
            found = self._advance(character, visible=visible)
            if found is None:
                continue
            start, stop = found
            before = len(self._held) - (self._length - start)
            kept = self._held[: max(0, before)] + (stop if self._include_stop else "")
            self.found, self._held = stop, ""
            return self._drop_inherited(kept)
        return self._drop_inherited(self._release())

    def _advance(self, character: str, *, visible: bool) -> tuple[int, str] | None:
        """Take a character; the stop string that it completes, with its start, the longest if several.

        The start is a number of visible characters.
        """
        found: list[tuple[int, str]] = []
        if self._spelled is not None:
            self._visible_before.append(self._length)
            stop = self._spelled.advance(character)
            if stop:
                found.append((self._visible_before[-len(stop)], stop))
        if visible:
            self._held += character
            self._length += 1
            stop = self._visible.advance(character)
            if stop:
                found.append((self._length - len(stop), stop))
        return min(found, key=lambda one: (one[0], -len(one[1])), default=None)

    def _spell_out(self) -> None:
        """Begin to follow the spelled text, which was the visible one so far."""
        if self._spelled is None:
            self._spelled = self._visible.copy()
            first = max(0, self._length - self._longest)
            self._visible_before = deque(range(first, self._length), maxlen=self._longest)

    def _release(self) -> str:
        """Take the text that cannot become a part of a stop string any more."""
        start = self._length - self._visible.longest
        if self._spelled is not None and self._spelled.longest:
            start = min(start, self._visible_before[-self._spelled.longest])
        cut = max(0, len(self._held) - (self._length - start))
        text, self._held = self._held[:cut], self._held[cut:]
        return text

    def _drop_inherited(self, text: str) -> str:
        dropped = min(self._num_inherited, len(text))
        self._num_inherited -= dropped
        return text[dropped:]


class _PrefixTracker:
    """The prefixes of stop strings that a text ends with (Knuth, Morris and Pratt).

    Attributes:
        longest: length of the longest such prefix.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._borders = {stop: _borders(stop) for stop in stops}
        self._beginning_with: dict[str, list[str]] = {}
        for stop in self._borders:
            self._beginning_with.setdefault(stop[0], []).append(stop)
        self._matched: dict[str, int] = {}  # stop string to the length of its prefix, above 0
        self.longest = 0

    def copy(self) -> Self:
        """An independent tracker in the same state."""
        twin = type(self)(())
        twin._borders, twin._beginning_with = self._borders, self._beginning_with
        twin._matched, twin.longest = self._matched, self.longest  # replaced, never changed
        return twin

    def advance(self, character: str) -> str:
        """Take a character; the longest stop string that the text now ends with, or an empty string."""
        beginning = self._beginning_with.get(character, ())
        if not self._matched and not beginning:
            return ""
        matched: dict[str, int] = {}
        complete = ""
        for stop in {**self._matched, **dict.fromkeys(beginning)}:
            borders, length = self._borders[stop], self._matched.get(stop, 0)
            while length and stop[length] != character:
                length = borders[length - 1]
            length += stop[length] == character
            if length == len(stop):
                complete = max(complete, stop, key=len)
                length = borders[-1]
            if length:
                matched[stop] = length
        self._matched = matched
        self.longest = max(matched.values(), default=0)
        return complete


def _borders(text: str) -> list[int]:
    """For each prefix of a text, the length of its longest proper prefix that is also its suffix."""
    borders = [0] * len(text)
    length = 0
    for at in range(1, len(text)):
        while length and text[at] != text[length]:
            length = borders[length - 1]
        length += text[at] == text[length]
        borders[at] = length
    return borders
