"""The default title of a conversation, derived from its first message."""

import unicodedata

_LENGTH = 60
UNTITLED = "New conversation"
"""The title before the first message."""
_JOINERS = "\u200d\ufe0e\ufe0f"


def title_of(text: str) -> str:
    """One line of at most 60 characters, truncated between words if possible."""
    line = " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())
    if not line:
        return UNTITLED
    if len(line) <= _LENGTH:
        return line
    cut = line.rfind(" ", _LENGTH // 2, _LENGTH)
    if cut < 0:
        cut = _LENGTH - 1
        while cut > 1 and _joins(line, cut):
            cut -= 1
    return line[:cut].rstrip() + "…"


def _joins(line: str, at: int) -> bool:
    """Whether a cut before character `at` would split a grapheme (marks, joined emoji)."""
    here, before = line[at], line[at - 1]
    return unicodedata.category(here).startswith("M") or here in _JOINERS or before in _JOINERS
