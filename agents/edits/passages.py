"""Passages of lines that an answer wants replaced: SEARCH/REPLACE blocks, and the hunks of a diff.

A passage is found by its lines, which must stand in the file exactly, and in one place only. The line number
of a hunk decides between several places; a model's other counts are often wrong and are not read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agents.api.errors import InvalidTask
from agents.edits.source_lines import SourceLines, Splice, changed_range

_SEARCH = re.compile(r"^<{5,9} ?(?:SEARCH|ORIGINAL)\s*$")
_DIVIDER = re.compile(r"^={5,9}\s*$")
_REPLACE = re.compile(r"^>{5,9} ?(?:REPLACE|UPDATED)\s*$")
_HUNK = re.compile(r"^@@(?: -(\d+)(?:,\d+)? \+\d+(?:,\d+)?)? ?@*")
_HEADERS = ("diff ", "index ", "new file", "deleted file", "old mode", "new mode", "similarity ")
_NO_PATH = "/dev/null"


@dataclass(frozen=True, slots=True)
class Passage:
    """Old lines and what stands there afterwards.

    Attributes:
        path: of the file, as the answer names it; empty if it does not.
        old: empty for a new file.
        line: where the old lines begin, from 1; 0 if that is not said.
    """

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int = 0


def has_search_blocks(code: str) -> bool:
    """Whether a text has SEARCH/REPLACE blocks."""
    return any(_SEARCH.match(line) for line in code.split("\n"))


def is_diff(code: str) -> bool:
    """Whether a text is a unified diff, by its hunks."""
    lines = code.split("\n")
    return any(line.startswith("@@") for line in lines) and any(
        line.startswith(("+", "-")) for line in lines
    )


def read_search_blocks(code: str) -> list[Passage]:
    """The SEARCH/REPLACE blocks of a text; the line above one may name its file.

    Raises:
        InvalidTask: a block does not end.
    """
    found: list[Passage] = []
    above = path = ""
    old: list[str] | None = None
    new: list[str] | None = None
    for line in _lines(code):
        if old is None:
            if _SEARCH.match(line):
                path = above or path
                old = []
            above = line.strip().strip("`*") if line.strip() else ""
        elif new is None:
            if _DIVIDER.match(line):
                new = []
            else:
                old.append(line)
        elif _REPLACE.match(line):
            found.append(Passage(path, tuple(old), tuple(new)))
            old = new = None
            above = ""
        else:
            new.append(line)
    if old is not None:
        raise InvalidTask("A SEARCH/REPLACE block of the answer does not end.")
    return found


def read_hunks(diff: str) -> list[Passage]:
    """The hunks of a unified diff, with or without file names.

    Raises:
        InvalidTask: it deletes or renames a file, or a line belongs to no hunk.
    """
    found: list[Passage] = []
    path, created = "", False
    lines = _lines(diff)
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            before, after = _path(line[4:]), _path(lines[at + 1][4:])
            if after == _NO_PATH:
                raise InvalidTask(
                    "The answer's diff deletes a file, which is not done from the chat."
                )
            path, created = after, before == _NO_PATH
            at += 2
        elif match := _HUNK.match(line):
            at += 1
            start = at
            while at < len(lines) and not _ends_hunk(lines, at):
                at += 1
            found.append(_hunk(path, lines[start:at], int(match[1] or 0), created=created))
        elif line.startswith(("rename ", "copy ", "GIT binary patch", "Binary files ")):
            raise InvalidTask(f"{line:.40} in the answer's diff is not supported.")
        elif line.startswith(_HEADERS) or not line.strip():
            at += 1
        elif line.startswith(("+", "-")) and not found:
            raise InvalidTask(
                "The answer's diff has no hunk header (@@), so its place is not known."
            )
        else:
            raise InvalidTask(f"A line of the answer's diff is not part of a hunk: {line:.60}")
    return found


def place_passages(path: str, source: SourceLines, passages: Sequence[Passage]) -> list[Splice]:
    """The splices of a file's lines, without the lines that stay.

    Raises:
        InvalidTask: the old lines are not there, in several places, or two passages overlap.
    """
    splices: list[Splice] = []
    for one in passages:
        start = _place(path, source.lines, one)
        first, old_end, new_end = changed_range(one.old, one.new)
        splices.append(Splice(start + first, start + old_end, one.new[first:new_end]))
    splices.sort(key=lambda splice: (splice.start, splice.end))
    for before, after in pairwise(splices):
        if after.start < before.end or (before.start, before.end) == (after.start, after.end):
            raise InvalidTask(f"Two changes of the answer to {path} overlap.")
    return [one for one in splices if one.lines or one.start != one.end]


def is_applied(source: SourceLines, passages: Sequence[Passage]) -> bool:
    """Whether a file has the new lines of all passages already, and none of their old ones."""
    return all(
        one.new
        and len(_places(source.lines, one.new)) == 1
        and (not one.old or not _places(source.lines, one.old))
        for one in passages
    )


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    own = list(wanted)
    return [at for at in range(len(lines) - len(own) + 1) if list(lines[at : at + len(own)]) == own]


def _place(path: str, lines: Sequence[str], passage: Passage) -> int:
    old = list(passage.old)
    if not old:
        if not lines:
            return 0
        raise InvalidTask(f"The answer adds lines to {path} without saying where.")
    places = _places(lines, old)
    if len(places) > 1 and passage.line - 1 in places:
        return passage.line - 1
    if len(places) == 1:
        return places[0]
    shown = next((line.strip() for line in old if line.strip()), "")
    if places:
        raise InvalidTask(
            f"The lines that the answer replaces stand {len(places)} times in {path}: {shown:.60}"
        )
    raise InvalidTask(f"The lines that the answer replaces are not in {path}: {shown:.60}")


def _ends_hunk(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if line.startswith(("@@", "diff ")):
        return True
    if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
        return True
    return not line and all(not each for each in lines[at:])


def _hunk(path: str, lines: Sequence[str], line: int, *, created: bool) -> Passage:
    old: list[str] = []
    new: list[str] = []
    for one in lines:
        mark, body = one[:1], one[1:]
        if mark == "\\":
            continue  # no newline at the end: the file's own end is kept
        if mark in ("", " "):
            old.append(body)
            new.append(body)
        elif mark == "-":
            old.append(body)
        elif mark == "+":
            new.append(body)
        else:
            raise InvalidTask(f"A line of the answer's diff is not part of a hunk: {one:.60}")
    if created and old:
        raise InvalidTask(f"The answer's diff creates {path} and removes lines of it.")
    return Passage(path, tuple(old), tuple(new), line)


def _path(text: str) -> str:
    name = text.split("\t", 1)[0].strip()
    return name[2:] if name.startswith(("a/", "b/")) else name


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines and not lines[-1] else lines
