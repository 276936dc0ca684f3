"""Code of a language without a syntax tree here: each block replaces the one that begins with the same line.

A block begins at the margin below a blank line. In the file its first line must stand once, and the block
there ends at the first line with the same indentation and text as the block's last line. Text that has the
file's first and last line is the whole file.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from agents.api.errors import InvalidTask
from agents.edits.elisions import first_elision
from agents.edits.source_lines import SourceLines, Splice, changed_range, leading_space

_MIN_WHOLE = 0.5
"""Share of the file's lines that text must have to be the whole file if it begins and ends otherwise."""


def match_blocks(path: str, source: SourceLines, code: str) -> list[Splice]:
    """How code changes a file.

    Raises:
        InvalidTask: a block's place is not known or not unique, or a part is left out.
    """
    lines = source.lines
    new = [line.rstrip("\r") for line in code.rstrip("\n").split("\n")]
    left_out = first_elision(new, lines)
    if left_out:
        raise InvalidTask(
            f"The answer leaves out a part of {path} ({left_out:.60}): ask for all of it."
        )
    if _is_whole(lines, new):
        return _trimmed(0, len(lines), lines, new)
    splices: list[Splice] = []
    for start, end in _blocks_of(new):
        block = new[start:end]
        while block and not block[-1].strip():
            block.pop()
        first, last = _place(path, lines, block)
        space = leading_space(lines[first])
        moved = [space + line if line.strip() else line for line in block]
        splices += _trimmed(first, last, lines[first:last], moved)
    splices.sort(key=lambda splice: splice.start)
    if any(after.start < before.end for before, after in pairwise(splices)):
        raise InvalidTask(f"Two changes of the answer to {path} overlap.")
    return splices


def _blocks_of(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The blocks of a text: the first one at its first line, others at the margin below a blank line."""
    start: int | None = None
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        at_margin = not line[:1].isspace()
        below_blank = at == 0 or not lines[at - 1].strip()
        if start is None:
            start = at
        elif at_margin and below_blank:
            yield start, at
            start = at
    if start is not None:
        yield start, len(lines)


def _is_whole(old: Sequence[str], new: Sequence[str]) -> bool:
    before = [line.strip() for line in old if line.strip()]
    after = [line.strip() for line in new if line.strip()]
    if not before or not after:
        return True
    if before[0] == after[0] and before[-1] == after[-1] and len(before) > 1:
        return before.count(before[0]) == 1
    known = set(after)
    kept = sum(line in known for line in before)
    return len(before) > 3 and kept > _MIN_WHOLE * len(before) and before[0] == after[0]


def _place(path: str, lines: Sequence[str], block: Sequence[str]) -> tuple[int, int]:
    wanted, end = block[0].strip(), block[-1].strip()
    starts = [at for at, line in enumerate(lines) if line.strip() == wanted]
    if len(starts) != 1:
        where = f"stands {len(starts)} times" if starts else "is not"
        raise InvalidTask(
            f"The place of the answer's code is not known: its first line {where} in {path}: {wanted:.60}"
        )
    first = starts[0]
    space = leading_space(lines[first])
    if len(block) == 1:
        return first, first + 1
    for at in range(first + 1, len(lines)):
        if lines[at].strip() == end and leading_space(lines[at]) == space:
            return first, at + 1
    raise InvalidTask(
        f"The end of the answer's code is not in {path}: {end:.60} below {wanted:.60}"
    )


def _trimmed(start: int, end: int, old: Sequence[str], new: Sequence[str]) -> list[Splice]:
    """The splice without the lines that stay; none if all do."""
    first, old_end, new_end = changed_range(old, new)
    if first == old_end and first == new_end:
        return []
    return [Splice(start + first, start + old_end, tuple(new[first:new_end]))]
