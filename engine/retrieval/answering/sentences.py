"""Splits text into sentences, with their offsets.

The rules are those of plain prose and of text files: a sentence ends at `.`, `!` or `?` before white space
and something that can begin a sentence, at the full stops of CJK and Devanagari, at an empty line, and at
a list item or heading. They are good enough to show a quote and to compare claims; they know a few
abbreviations and no grammar.
"""

import re
from collections.abc import Iterator

_END = re.compile(
    r"[.!?]+[\"'”’)\]*_`]*(?=\s)"  # before white space; what follows decides in `_ends_sentence`
    r"|[。！？।॥]+[」』”’）]*"
    r"|(?m:^#{1,6}[ \t][^\n]*)"  # a heading, which is no part of the sentence below it
    r"|\n(?=[ \t]*(?:\n|[-*+•#|>]|\d{1,3}[.)]\s|```))"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|Fig|approx|resp|incl|ca|z\.B)|\b[A-Z])\.$"
)
_CONTINUES = re.compile(r"\s*[a-z,;:]")


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence in characters, half-open, without the white space around it.

    Cost: O(length). The spans are in order, do not overlap and together hold every character that is not
    white space.
    """
    start = 0
    for match in _END.finditer(text):
        if match[0][0] in ".!?" and not _ends_sentence(text, start, match):
            continue
        yield from _stripped(text, start, match.end())
        start = match.end()
    yield from _stripped(text, start, len(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    if "." not in match[0]:
        return True
    if _ABBREVIATION.search(text[max(start, match.start() - 10) : match.start() + 1]):
        return False
    return _CONTINUES.match(text, match.end()) is None


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    inner = piece.strip()
    if inner:
        first = start + piece.index(inner[0])
        yield first, first + len(inner)
