"""Sentences and paragraphs of plain text and Markdown, with their places.

Sentence ends are those of Latin, CJK, Devanagari and Arabic script. Headings, list items and table rows are
sentences of their own. Fenced code is left out. Linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from agents.text.months import MONTHS

_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s|$)|[。！？｡।॥؟۔]+[”’」』）]*")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_BLOCK_START = re.compile(r"\s*(?:#{1,6}\s|[-*+•]\s|\d{1,3}[.)]\s|\||>)")
_LAST_WORD = re.compile(r"[^\s(\[\"“]{1,40}$")
_NEXT_WORD = re.compile(r"\s+([^\W_]*)")
_KNOWN = """
mr mrs ms dr prof st jr sr vs etc e.g i.e cf al fig eq no nr vol pp p approx dept inc ltd co corp z.b d.h bzw
ca usw u.a evtl ggf bspw art abs m.e sog str hr fr jan feb mar apr jun jul aug sep sept oct nov dec
"""
_ABBREVIATIONS = frozenset(_KNOWN.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence.

    Attributes:
        text: its words, line breaks included.
        start: offset of its first character in the whole text.
        line: number of its first line, from 1.
        end_line: number of its last line.
        paragraph: number of its paragraph or block, from 0.
        heading: whether it is a Markdown heading.
    """

    text: str
    start: int
    line: int
    end_line: int
    paragraph: int
    heading: bool = False

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A run of lines without a blank one; `start` is an offset, `line` and `end_line` count from 1."""

    text: str
    start: int
    line: int
    end_line: int


def line_starts(text: str) -> list[int]:
    """Offsets of the first characters of all lines."""
    return [0] + [match.end() for match in re.finditer("\n", text)]


def line_at(starts: list[int], offset: int) -> int:
    """Number of the line, from 1, that holds an offset."""
    return bisect_right(starts, offset)


def paragraphs(text: str) -> list[Paragraph]:
    """Runs of lines between blank lines, fenced code included."""
    found = []
    offset, start, first = 0, 0, 1
    block: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            if not block:
                start, first = offset, number
            block.append(line)
        elif block:
            found.append(Paragraph("\n".join(block), start, first, number - 1))
            block = []
        offset += len(line) + 1
    return found


def sentences(text: str) -> list[Sentence]:
    """The sentences in order."""
    starts = line_starts(text)
    found = []
    for number, (start, block) in enumerate(_blocks(text)):
        heading = block.lstrip().startswith("#")
        for begin, end in _split(block):
            line = line_at(starts, start + begin)
            last = line_at(starts, start + end - 1)
            found.append(Sentence(block[begin:end], start + begin, line, last, number, heading))
    return found


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Text that belongs together, with its offset; a heading or list item begins a block of its own."""
    fenced = False
    start, block = 0, ""
    offset = 0
    for line in text.splitlines(keepends=True):
        is_fence = _FENCE.match(line) is not None
        begins = _BLOCK_START.match(line) is not None or block.lstrip().startswith("#")
        if block and (is_fence or fenced or begins or not line.strip()):
            yield start, block
            block = ""
        if is_fence:
            fenced = not fenced
        elif not fenced and line.strip():
            start = start if block else offset
            block += line
        offset += len(line)
    if block:
        yield start, block


def _split(block: str) -> Iterator[tuple[int, int]]:
    """Half-open ranges of the sentences of a block, without surrounding blanks."""
    marker = _BLOCK_START.match(block)
    start = marker.end() if marker and not block.lstrip().startswith(("|", ">")) else 0
    for match in _END.finditer(block, start):
        if not _ends_sentence(block, match.start(), match.end()):
            continue
        yield from _trimmed(block, start, match.end())
        start = match.end()
    yield from _trimmed(block, start, len(block))


def _trimmed(block: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    body = block[start:end]
    stripped = body.strip()
    if stripped:
        begin = start + len(body) - len(body.lstrip())
        yield begin, begin + len(stripped)


def _ends_sentence(block: str, start: int, end: int) -> bool:
    """Whether a mark that may end a sentence does; an abbreviation's full stop does not."""
    if block[start] != "." or end - start > 1:
        return True
    following = _NEXT_WORD.match(block, end)
    next_word = following[1] if following else ""
    if next_word[:1].islower():
        return False
    before = _LAST_WORD.search(block, max(0, start - 40), start)
    word = before.group().lower() if before else ""
    if word.isdigit() and len(word) <= 2:
        return next_word.lower() not in MONTHS  # German writes `31. Dezember`
    if len(word) == 1 and word.isalpha() and block[start - 1].isupper():
        return False  # an initial, as in `J. Smith`
    return word not in _ABBREVIATIONS
