"""`find_boundaries`: where a chunk may well begin, and how well."""

import re
from collections.abc import Iterable
from enum import IntEnum

# A gap between paragraphs ends before the indentation of the next one.
_GAP = r"\n[ \t\r]*\n(?:[ \t\r]*\n)*"
_PROSE = re.compile(
    rf"(?P<paragraph>{_GAP})"
    r"|(?P<sentence>[.!?…][\"')\]”’»]*(?:[ \t]+|(?=\n)(?!\n[ \t\r]*\n)\n)|[。！？｡।॥]+[」』”’]*)"
    r"|(?P<line>\n)"
)
_CODE = re.compile(rf"(?P<paragraph>{_GAP})|(?P<line>\n)")


class Strength(IntEnum):
    """How good a place is for the beginning of a chunk; higher is better."""

    LINE = 1
    SENTENCE = 2
    PARAGRAPH = 3
    BREAK = 4
    HEADING = 5


_STRENGTHS = {
    "line": Strength.LINE,
    "sentence": Strength.SENTENCE,
    "paragraph": Strength.PARAGRAPH,
}


def find_boundaries(
    text: str, headings: Iterable[int], breaks: Iterable[int], *, is_code: bool
) -> list[tuple[int, Strength]]:
    """Character offsets with their strengths, in order, each offset once.

    Args:
        text: the text.
        headings: offsets at which sections begin.
        breaks: other good places, by the document's parser.
        is_code: a full stop ends no sentence there.
    """
    found = {
        match.end(): _STRENGTHS[match.lastgroup or ""]
        for match in (_CODE if is_code else _PROSE).finditer(text)
    }
    found |= dict.fromkeys(breaks, Strength.BREAK)
    found |= dict.fromkeys(headings, Strength.HEADING)
    return sorted(found.items())
