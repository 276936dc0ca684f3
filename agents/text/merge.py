"""Three-way merge of lists of lines (diff3).

Khanna, Kunal and Pierce, "A Formal Investigation of Diff3" (2007). Laws, tested as properties: merging with
an unchanged side gives the other side; equal sides give themselves; the result without conflicts does not
depend on the order of the sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed differently; `line` is that of the marker in the merged text, from 1."""

    line: int
    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged lines, with conflict markers where there are conflicts."""

    lines: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


def merge_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Merged:
    """Merge two changed versions of `base`."""
    merged: list[str] = []
    conflicts: list[Conflict] = []
    position = ours_at = theirs_at = 0
    for start, ours_start, theirs_start, size in _common(base, ours, theirs):
        part = (
            tuple(base[position:start]),
            tuple(ours[ours_at:ours_start]),
            tuple(theirs[theirs_at:theirs_start]),
        )
        _merge_part(*part, merged, conflicts)
        merged.extend(base[start : start + size])
        position, ours_at, theirs_at = start + size, ours_start + size, theirs_start + size
    return Merged(tuple(merged), tuple(conflicts))


def merge_texts(base: str, ours: str, theirs: str) -> Merged:
    """`merge_lines` over the lines of three texts, whose ends belong to them."""
    return merge_lines(
        base.splitlines(keepends=True),
        ours.splitlines(keepends=True),
        theirs.splitlines(keepends=True),
    )


def _merge_part(
    base: tuple[str, ...],
    ours: tuple[str, ...],
    theirs: tuple[str, ...],
    merged: list[str],
    conflicts: list[Conflict],
) -> None:
    """Append the merge of a part in which no line is common to all three."""
    if ours == theirs or theirs == base:
        merged.extend(ours)
    elif ours == base:
        merged.extend(theirs)
    else:
        conflicts.append(Conflict(len(merged) + 1, base, ours, theirs))
        merged.extend(["<<<<<<< ours\n", *_ended(ours), "=======\n", *_ended(theirs)])
        merged.append(">>>>>>> theirs\n")


def _ended(lines: tuple[str, ...]) -> list[str]:
    return [line if line.endswith("\n") else line + "\n" for line in lines]


def _common(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[tuple[int, int, int, int]]:
    """Runs common to all three, as (base, ours, theirs, length), the empty one at the ends last."""
    mine = _matched(base, ours)
    other = _matched(base, theirs)
    runs: list[tuple[int, int, int, int]] = []
    for line in sorted(mine.keys() & other.keys()):
        if runs:
            start, ours_start, theirs_start, size = runs[-1]
            if (line, mine[line], other[line]) == (
                start + size,
                ours_start + size,
                theirs_start + size,
            ):
                runs[-1] = (start, ours_start, theirs_start, size + 1)
                continue
        runs.append((line, mine[line], other[line], 1))
    return [*runs, (len(base), len(ours), len(theirs), 0)]


def _matched(base: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Lines of `base` to the lines of `other` that they are kept as."""
    matcher = SequenceMatcher(None, base, other, autojunk=False)
    return {
        block.a + i: block.b + i
        for block in matcher.get_matching_blocks()
        for i in range(block.size)
    }
