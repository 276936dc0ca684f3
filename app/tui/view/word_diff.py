"""Splits texts into words and finds the words that two texts have in common, in order.

Bounded: two lists of words are compared word by word only if the product of their lengths is at most
`LIMIT`. Longer ones are first compared line by line (or sentence by sentence); what lies between equal
lines is then compared by words if it is short enough, and counts as different otherwise.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

LIMIT = 400_000
"""Most pairs of words that are compared. For more pairs of lines, `SequenceMatcher` ignores lines that
occur often, so that a repeated line costs no more than others."""

_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts that are written without spaces
_WORD = re.compile(rf"\n|[^\S\n]*(?:[{_WIDE}]|[^\s{_WIDE}]+)")
_LINE_ENDS = ("\n", ".", "!", "?", "。", "।")


class Block(NamedTuple):
    """Equal words: `a[start_a : start_a + size]` and `b[start_b : start_b + size]`."""

    start_a: int
    start_b: int
    size: int


def split_words(text: str) -> list[str]:
    """The words, each with the spaces before it; a line break is a word. Spaces at line ends are lost."""
    return _WORD.findall(text)


def equal_blocks(a: Sequence[str], b: Sequence[str]) -> list[Block]:
    """The blocks of equal words, ascending in both; spaces before words are ignored."""
    a, b = [word.strip(" \t") for word in a], [word.strip(" \t") for word in b]
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    found = [Block(0, 0, start)]
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(middle_a) * len(middle_b) <= LIMIT:
        between = _match(middle_a, middle_b)
    else:
        between = _match_by_lines(middle_a, middle_b)
    found += [Block(start + one, start + other, size) for one, other, size in between]
    found.append(Block(len(a) - end, len(b) - end, end))
    return [block for block in found if block.size]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _match(a: Sequence[object], b: Sequence[object]) -> list[Block]:
    matcher = SequenceMatcher(None, a, b, autojunk=len(a) * len(b) > LIMIT)
    return [Block(*block) for block in matcher.get_matching_blocks() if block.size]


def _match_by_lines(a: list[str], b: list[str]) -> list[Block]:
    lines_a, lines_b = _lines(a), _lines(b)
    starts_a, starts_b = _starts(lines_a), _starts(lines_b)
    found: list[Block] = []
    at_a = at_b = 0
    for line_a, line_b, count in [*_match(lines_a, lines_b), Block(len(lines_a), len(lines_b), 0)]:
        to_a, to_b = starts_a[line_a], starts_b[line_b]
        if (to_a - at_a) * (to_b - at_b) <= LIMIT:
            between = _match(a[at_a:to_a], b[at_b:to_b])
            found += [Block(at_a + one, at_b + other, size) for one, other, size in between]
        at_a, at_b = starts_a[line_a + count], starts_b[line_b + count]
        found.append(Block(to_a, to_b, at_a - to_a))
    return [block for block in found if block.size]


def _lines(words: list[str]) -> list[tuple[str, ...]]:
    """The words grouped: a group ends with a line break or a sentence."""
    lines: list[tuple[str, ...]] = []
    start = 0
    for index, word in enumerate(words):
        if word.endswith(_LINE_ENDS):
            lines.append(tuple(words[start : index + 1]))
            start = index + 1
    if start < len(words):
        lines.append(tuple(words[start:]))
    return lines


def _starts(lines: Sequence[Sequence[str]]) -> list[int]:
    """Index of each line's first word, and the number of words."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts
