"""`claims_of`: the sentences of an answer, each with the citations that belong to it.

A citation belongs to the sentence that it stands in or directly behind. Code blocks are claims that cite
nothing, and within backticks a number in brackets is a subscript.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.retrieval.answering.sentences import sentence_spans

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_MARKER = re.compile(r"\[(\d{1,9})\]")
_TRAILING = re.compile(r"(?:[ \t]*\[\d{1,9}\])+[.!?。]?")
_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Marker:
    """A number in brackets: its value and where it stands in the answer, half-open."""

    n: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer.

    Attributes:
        start: offset of its first character in the answer.
        end: offset behind it and behind its citations.
        text: the sentence without its citations.
        markers: its citations, in order.
        is_code: whether it is a code block, which is not checked.
    """

    start: int
    end: int
    text: str
    markers: tuple[Marker, ...]
    is_code: bool = False


def claims_of(answer: str, start: int = 0) -> Iterator[Claim]:
    """The claims of an answer from offset `start` on, in order.

    When text is added, the last claim can grow; the ones before it are complete.
    """
    at = start
    for block in _BLOCK.finditer(answer, start):
        yield from _prose(answer, at, block.start())
        yield Claim(block.start(), block.end(), block[0], (), is_code=True)
        at = block.end()
    yield from _prose(answer, at, len(answer))


def _prose(answer: str, start: int, end: int) -> Iterator[Claim]:
    done = start
    for first, last in sentence_spans(answer[start:end]):
        first, last = start + first, start + last
        if last <= done:
            continue  # nothing but the citations of the sentence before it
        first = max(first, done)
        trailing = _TRAILING.match(answer, last, end)
        done = trailing.end() if trailing else last
        yield _claim(answer, first, done)


def _claim(answer: str, start: int, end: int) -> Claim:
    while start < end and answer[start].isspace():
        start += 1
    text = answer[start:end]
    code = [match.span() for match in _CODE.finditer(text)]
    markers = tuple(
        Marker(int(match[1]), start + match.start(), start + match.end())
        for match in _MARKER.finditer(text)
        if not any(first <= match.start() < last for first, last in code)
    )
    return Claim(start, end, _without(answer, start, end, markers), markers)


def _without(answer: str, start: int, end: int, markers: tuple[Marker, ...]) -> str:
    pieces, at = [], start
    for marker in markers:
        pieces.append(answer[at : marker.start])
        at = marker.end
    text = "".join([*pieces, answer[at:end]])
    return re.sub(r"[ \t]+(?=[.,;:!?]|\s|\Z)", "", text).strip()
