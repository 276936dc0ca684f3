"""`StreamCheck`: detections and redaction in a text that arrives in pieces.

Invariant: the released text, the detections and whether it is blocked do not depend on how the text is
divided; checking the whole text at once is one piece. Text is held back while more of it
could change its fate: the last word, a run of digits, an unfinished key, at most the longest
`Recognizer.max_chars` and `_MIN_CHARS`.

Cost: one search of the piece while every recognizer has an `opening` and none is in the text; else one
for each recognizer, over at least `_MIN_CHARS` characters and what is held back.

A recognizer that raises is left out from there on, and reported: the others go on.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from agents.guardrails.detection import Action, Detection, Kind
from agents.guardrails.recognizer import CONTEXT, Recognizer, Scan

Replace = Callable[[Detection], str]
"""The text that stands for a redacted detection."""

Report = Callable[[str, Exception], None]
"""Called with the name of a recognizer that raised, and with what it raised."""

_MIN_CHARS = 16
"""Shorter pieces are joined before they are searched by recognizers without an `opening`: what a search costs
depends little on the length of the piece."""

_KEPT = 4 * CONTEXT
"""Length of the released text from which on all but its last `CONTEXT` characters are forgotten."""


def _ignore(name: str, error: Exception) -> None:
    """Report nothing."""


@lru_cache(maxsize=64)
def _any_opening(openings: tuple[re.Pattern[str] | None, ...]) -> re.Pattern[str] | None:
    """Matches wherever one of the openings does; None if a recognizer has none."""
    sources = []
    for one in openings:
        if one is None:
            return None
        flags = "i" if one.flags & re.IGNORECASE else ""
        sources.append(f"(?{flags}:{one.pattern})")
    return re.compile("|".join(sources) or "(?!)")


class StreamCheck:
    """One text. One thread at a time."""

    def __init__(
        self,
        recognizers: Sequence[Recognizer],
        actions: Mapping[Kind, Action],
        replacement: Replace,
        *,
        max_chars: int,
        on_failure: Report = _ignore,
    ) -> None:
        """Begin an empty text.

        Args:
            recognizers: what is looked for.
            actions: what happens, by kind; kinds that are allowed are not looked for.
            replacement: what redacted text becomes; called in the text's order.
            max_chars: longer texts are a detection of kind `SIZE` at this offset.
            on_failure: called when a recognizer raises.
        """
        wanted = [one for one in recognizers if actions[one.kind] is not Action.ALLOW]
        self._scans = [Scan(one) for one in wanted]
        self._opening = _any_opening(tuple(one.opening for one in wanted))
        self._on_failure = on_failure
        self._order = {one.name: index for index, one in enumerate(wanted)}
        self._actions = actions
        self._replacement = replacement
        self._max_chars = max_chars
        self._text = ""  # the whole text's [_base, _base + len)
        self._waiting = ""  # behind it, not looked at yet
        self._base = 0
        self._released = 0  # offset in the whole text
        self._pending: list[
            Detection
        ] = []  # decided, to be redacted or blocked, offsets of the whole text
        self.detections: list[Detection] = []
        self.blocked: Detection | None = None

    @property
    def action(self) -> Action:
        """The strongest action that the detections asked for."""
        taken = (self._actions[one.kind] for one in self.detections)
        return max(taken, key=lambda action: action.rank, default=Action.ALLOW)

    def feed(self, piece: str) -> str:
        """The checked text that is certain now; empty after a block."""
        if self.blocked is not None:
            return ""
        if self._opening is None:
            self._waiting += piece
            if len(self._waiting) < _MIN_CHARS:
                return ""
            piece, self._waiting = self._waiting, ""
        elif self._passes(piece):
            return piece
        return self._take(piece)

    def _take(self, piece: str) -> str:
        """The checked text that is certain after this piece."""
        self._text += piece
        excess = self._base + len(self._text) - self._max_chars
        if excess > 0:
            self._text = self._text[: len(self._text) - excess]
            released = self._advance(finished=True)
            if self.blocked is None:
                self._block(Detection(Kind.SIZE, "size", self._max_chars, self._max_chars, ""))
            return released
        return self._advance(finished=False)

    def finish(self) -> str:
        """The rest of the text."""
        if self.blocked is not None:
            return ""
        waiting, self._waiting = self._waiting, ""
        released = self._take(waiting)
        return released if self.blocked is not None else released + self._advance(finished=True)

    def _passes(self, piece: str) -> bool:
        """Whether nothing is held back and nothing begins in the piece, which is then released."""
        end = self._base + len(self._text)
        if self._opening is None or self._released != end or end + len(piece) > self._max_chars:
            return False
        text = self._text + piece
        if self._opening.search(text, len(self._text)) is not None:
            return False
        self._released = end + len(piece)
        if len(text) > _KEPT:
            self._base += len(text) - CONTEXT
            text = text[-CONTEXT:]
        self._text = text
        return True

    def _advance(self, *, finished: bool) -> str:
        decided = len(self._text)
        found: list[Detection] = []
        for scan in tuple(self._scans):
            scan.skip_to(self._released)
            try:
                new, stop = scan.advance(self._text, self._base, finished=finished)
            except Exception as error:  # a plugin's code: anything may be raised
                self._scans.remove(scan)
                self._on_failure(scan.name, error)
                continue
            decided = min(decided, stop)
            found += new
        for one in found:
            moved = replace(one, start=one.start + self._base, end=one.end + self._base)
            self._pending.append(moved)
        self._pending.sort(key=lambda one: (one.start, -one.end, self._order[one.rule]))
        released = self._release(self._base + decided)
        keep = max(0, min(self._released, self._base + decided) - CONTEXT - self._base)
        self._text, self._base = self._text[keep:], self._base + keep
        return released

    def _release(self, horizon: int) -> str:
        """Emit the text below `horizon`, below which every detection's start is known."""
        parts: list[str] = []
        while self._pending:
            group_end, size, action = self._first_group()
            if group_end > horizon:
                horizon = min(horizon, self._pending[0].start)
                break
            group, self._pending = self._pending[:size], self._pending[size:]
            self.detections += group
            if action.rank < Action.REDACT.rank:
                continue
            acting = [one for one in group if self._actions[one.kind].rank >= Action.REDACT.rank]
            start = min(one.start for one in acting)
            end = max(one.end for one in acting)
            parts.append(self._slice(self._released, start))
            self._released = end
            if action is Action.BLOCK:
                self.blocked = next(
                    one for one in acting if self._actions[one.kind] is Action.BLOCK
                )
                self._pending.clear()
                return "".join(parts)
            text = self._slice(start, end)
            parts.append(self._replacement(replace(acting[0], start=start, end=end, text=text)))
        if horizon > self._released:
            parts.append(self._slice(self._released, horizon))
            self._released = horizon
        return "".join(parts)

    def _first_group(self) -> tuple[int, int, Action]:
        """The first detections that overlap each other: their end, number and strongest action."""
        end, size, action = self._pending[0].end, 0, Action.ALLOW
        for one in self._pending:
            if size and one.start >= end:
                break
            end = max(end, one.end)
            size += 1
            action = max(action, self._actions[one.kind], key=lambda each: each.rank)
        return end, size, action

    def _slice(self, start: int, end: int) -> str:
        return self._text[start - self._base : end - self._base]

    def _block(self, detection: Detection) -> None:
        self.detections.append(detection)
        self.blocked = detection
