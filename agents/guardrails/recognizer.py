"""`Recognizer`: a bounded pattern, and `Scan`, which finds its matches in a text that arrives in pieces.

Invariant: a scan finds the same matches for every division of a text into pieces. It holds because a match
consists of characters of the recognizer's alphabet, has at most `max_chars` of them, and is decided by them,
by at most `CONTEXT` characters before and by one behind. A start is therefore decided once the run of
alphabet characters that it lies in has ended, or `max_chars` more characters are known.

A recognizer with an `opening` holds text back only from a place at which its pattern can begin, so that prose
passes at once.

Cost: O(characters) for a piece, plus the run that was held back.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agents.guardrails.detection import Detection, Kind

CONTEXT = 256
"""Characters before a match that patterns and validators may look at."""

Validate = Callable[[str, int, int], tuple[int, int] | None]
"""From a text and the half-open span of a match to the span to report, which lies inside, or None."""


def accept(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Report the whole match."""
    return start, end


def context(text: str, start: int, chars: int = CONTEXT) -> str:
    """The characters before a match."""
    return text[max(0, start - min(chars, CONTEXT)) : start]


@dataclass(frozen=True, slots=True)
class Recognizer:
    """One pattern.

    Attributes:
        kind: what its matches are.
        name: unique, such as `github_token`.
        pattern: bounded; looks ahead at most one character and behind at most `CONTEXT`.
        alphabet: one character class, all characters that a match can have, such as `[0-9 ]`.
        max_chars: upper bound of a match's length.
        prefix: what every match begins with, as it is spelled; empty if there is no such text. A text is held
            back only from there on.
        opening: in place of a prefix: matches at every offset at which `pattern` matches or, with more text
            behind the end, could match; None if there is no such pattern. It looks behind as `pattern` does.
        hints: texts of which every match contains one; a text without them is not searched. A search for a
            literal text is some twenty times as fast as one for a pattern.
        validate: decides about a match.
        confidence: of its detections.
    """

    kind: Kind
    name: str
    pattern: re.Pattern[str]
    alphabet: re.Pattern[str]
    max_chars: int
    prefix: str = ""
    hints: tuple[str, ...] = ()
    validate: Validate = accept
    confidence: float = 1.0
    opening: re.Pattern[str] | None = None

    def undecided(self, text: str) -> int:
        """The first offset at which a match may begin that more text could change; `len(text)` if none."""
        if self.opening is not None:
            lowest = max(0, len(text) - self.max_chars)
            if self.opening.search(text, lowest) is None:
                return len(text)
            begun = self.opening.search(text, _run_start(self.alphabet, text, self.max_chars))
            return len(text) if begun is None else begun.start()
        if not self.prefix:
            return _run_start(self.alphabet, text, self.max_chars)
        first = text.find(self.prefix, max(0, len(text) - self.max_chars))
        if first >= 0:
            first = text.find(self.prefix, _run_start(self.alphabet, text, self.max_chars))
        if first >= 0:
            return first
        for chars in range(min(len(self.prefix) - 1, len(text)), 0, -1):
            if text.endswith(self.prefix[:chars]):
                return len(text) - chars
        return len(text)

    def find(self, text: str, start: int = 0, stop: int | None = None) -> Iterator[Detection]:
        """Matches that begin in `text[start:stop]`, in order, without overlaps."""
        stop = len(text) if stop is None else stop
        if self.hints and not any(hint in text for hint in self.hints):
            return
        while start < stop:
            match = self.pattern.search(text, start)
            if match is None or match.start() >= stop:
                return
            span = self.validate(text, match.start(), match.end())
            if span is None:
                start = match.start() + 1
                continue
            begin, end = span
            yield Detection(
                self.kind, self.name, begin, end, text[begin:end], confidence=self.confidence
            )
            start = max(end, match.start() + 1)


def recognizer(
    kind: Kind,
    name: str,
    pattern: str,
    *,
    alphabet: str,
    max_chars: int,
    prefix: str = "",
    hints: tuple[str, ...] = (),
    validate: Validate = accept,
    confidence: float = 1.0,
    flags: int = 0,
    opening: str = "",
) -> Recognizer:
    """A recognizer from the sources of its patterns."""
    return Recognizer(
        kind,
        name,
        re.compile(pattern, flags),
        re.compile(alphabet, flags),
        max_chars,
        prefix,
        hints,
        validate,
        confidence,
        re.compile(opening, flags) if opening else None,
    )


def _run_start(alphabet: re.Pattern[str], text: str, limit: int) -> int:
    """Start of the run of alphabet characters that `text` ends with, at most `limit` before its end."""
    position = len(text)
    lowest = max(0, position - limit)
    while position > lowest and alphabet.match(text, position - 1):
        position -= 1
    return position


class Scan:
    """Matches of one recognizer in a growing text. Offsets are those of the whole text."""

    def __init__(self, recognizer: Recognizer) -> None:
        """Begin with an empty text."""
        self._recognizer = recognizer
        self._next = 0

    @property
    def name(self) -> str:
        """The recognizer's name."""
        return self._recognizer.name

    def skip_to(self, offset: int) -> None:
        """Begin no match before this offset of the whole text: nothing can begin there."""
        self._next = max(self._next, offset)

    def advance(self, text: str, base: int, *, finished: bool) -> tuple[list[Detection], int]:
        """Decide what can be decided.

        Args:
            text: the end of the text so far; contains `CONTEXT` characters before the lowest offset that this
                method returned last, unless the text begins there.
            base: offset of `text[0]` in the whole text.
            finished: whether nothing follows.

        Returns:
            New detections in `text`'s offsets, and the offset in `text` below which every start is decided.
        """
        stop = len(text) if finished else self._recognizer.undecided(text)
        found = list(self._recognizer.find(text, max(0, self._next - base), stop))
        self._next = max(self._next, base + stop)
        if found:
            self._next = max(self._next, base + found[-1].end)
        return found, stop
