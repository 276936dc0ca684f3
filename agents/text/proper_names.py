"""Proper names in text: runs of capitalised words, acronyms and names with digits such as `M-7`."""

import re
from dataclasses import dataclass

from agents.text.months import MONTHS
from agents.text.words import STOP_WORDS, Word, words

_CODE = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Z])[A-Za-z\d]+(?:[-/][A-Za-z\d]+)*")
_JOINS = frozenset({" ", "-", " of ", " de ", " von ", " van ", " & "})
_STOPS = frozenset().union(*STOP_WORDS.values())
_DAYS = frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])


@dataclass(frozen=True, slots=True)
class ProperName:
    """A name.

    Attributes:
        text: as written.
        start: offset of its first character.
        parts: its words.
        begins_sentence: whether it is one word at the start of a sentence, where capitals say nothing.
    """

    text: str
    start: int
    parts: tuple[str, ...]
    begins_sentence: bool = False


def proper_names(text: str) -> list[ProperName]:
    """The names of a sentence or text, in order. Months, days and stop words are none."""
    found: list[ProperName] = []
    run: list[Word] = []
    for word in [*words(text), None]:
        if word is not None and _is_name(word.text):
            if run and text[run[-1].start + len(run[-1].text) : word.start] not in _JOINS:
                found.append(_name(text, run))
                run = []
            run.append(word)
        elif run:
            found.append(_name(text, run))
            run = []
    return found


def _is_name(word: str) -> bool:
    if not word[0].isupper():
        return False
    lower = word.lower().removesuffix("'s").removesuffix("’s")
    return lower not in _STOPS and lower not in MONTHS and lower not in _DAYS


def _name(text: str, run: list[Word]) -> ProperName:
    start, end = run[0].start, run[-1].start + len(run[-1].text)
    before = text[:start].rstrip()
    begins = not before or before[-1] in '.!?:;|#*-"“(।。'
    plain = len(run) == 1 and _CODE.fullmatch(run[0].text) is None and not run[0].text.isupper()
    parts = tuple(word.text.removesuffix("'s").removesuffix("’s") for word in run)
    return ProperName(text[start:end], start, parts, begins and plain)
