"""Words and phrases of the configuration. None is built in: keywords alone say little about a text."""

import re
from collections.abc import Sequence

from agents.guardrails.detection import Kind
from agents.guardrails.policy import MAX_ENTRY_CHARS
from agents.guardrails.recognizer import Recognizer, recognizer


def blocklist(entries: Sequence[str]) -> tuple[Recognizer, ...]:
    """One recognizer for each entry.

    Raises:
        ValueError: an entry is empty or longer than `MAX_ENTRY_CHARS`.
    """
    return tuple(_entry(entry.strip()) for entry in entries)


def _opening(entry: str) -> str:
    """The entry, or at the end of the text any beginning of it."""
    ends = "|".join(re.escape(entry[:length]) for length in range(len(entry), 0, -1))
    return rf"(?<!\w)(?:{re.escape(entry)}|(?:{ends})\Z)"


def _entry(entry: str) -> Recognizer:
    if not 0 < len(entry) <= MAX_ENTRY_CHARS:
        raise ValueError(f"An entry of the blocklist has 1 to {MAX_ENTRY_CHARS} characters.")
    characters = "".join(re.escape(character) for character in sorted(set(entry)))
    return recognizer(
        Kind.BLOCKLIST,
        f"blocklist:{entry[:40]}",
        rf"(?<!\w){re.escape(entry)}(?!\w)",
        alphabet=f"[{characters}]",
        max_chars=len(entry),
        flags=re.IGNORECASE,
        opening=_opening(entry),
    )
