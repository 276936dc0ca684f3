"""The line of a text that contains what was searched for."""

import re
from dataclasses import dataclass

_BEFORE = 30
_LENGTH = 160


@dataclass(frozen=True, slots=True)
class MatchingLine:
    """A part of one line of a text; `text[start:end]` is the match, empty if there is none."""

    text: str
    start: int
    end: int


def matching_line(text: str, query: str) -> MatchingLine:
    """The line with the first match, cut around it; the first line if nothing matches. Case is ignored."""
    found = re.search(re.escape(query), text, re.IGNORECASE) if query else None
    start, end = found.span() if found else (0, 0)
    first = text.rfind("\n", 0, start) + 1
    if start - first > _BEFORE:
        # Begin at a word, unless the word is longer than what is cut.
        space = text.find(" ", start - _BEFORE, start - 1)
        first = space + 1 if space >= 0 else start - _BEFORE
        before = "…"
    else:
        before = ""
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    last = max(end, min(last, first + _LENGTH))
    shift = len(before) - first
    return MatchingLine(before + text[first:last], start + shift, end + shift)
