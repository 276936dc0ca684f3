"""Unified diffs: making, reading and strict application.

Applying the diff of two texts to the first gives the second. A hunk applies only at its line, or at the
single other place where its old lines stand; otherwise it is refused, never guessed.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_NEWLINE = "\\ No newline at end of file"
_NOWHERE = "/dev/null"


class InvalidDiff(ValueError):
    """A diff cannot be read or does not apply; the message says where in one sentence."""


@dataclass(slots=True)
class Hunk:
    """Lines with their mark (` `, `-`, `+`) and end; `start` is the first old line, from 1."""

    start: int
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for mark, text in self.lines if mark != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that replace them."""
        return [text for mark, text in self.lines if mark != "-"]


@dataclass(slots=True)
class FilePatch:
    """The hunks of one file; `old_path` or `path` is empty for a file that is created or removed."""

    old_path: str
    path: str
    hunks: list[Hunk] = field(default_factory=list)


def make_diff(before: str, after: str, path: str) -> str:
    """A unified diff with three lines of context; empty for equal texts. `path` is without prefix."""
    old, new = split_lines(before), split_lines(after)
    names = (f"a/{path}" if before else _NOWHERE), (f"b/{path}" if after else _NOWHERE)
    return "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n"
        for line in difflib.unified_diff(old, new, *names)
    )


def parse_diff(text: str) -> list[FilePatch]:
    """The patches of a diff; lines before, between and after them are left out.

    Raises:
        InvalidDiff: there is no hunk, or a hunk ends early.
    """
    lines = split_lines(text)
    patches: list[FilePatch] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            patches.append(FilePatch(_path(line), _path(lines[at + 1])))
            at += 2
            continue
        match = _HUNK.match(line)
        if match and patches:
            hunk, at = _hunk(lines, at, match)
            patches[-1].hunks.append(hunk)
            continue
        at += 1
    if not any(patch.hunks for patch in patches):
        raise InvalidDiff("There is no hunk in the diff.")
    return patches


def apply_patch(patch: FilePatch, before: str) -> str:
    """The text after the patch.

    Raises:
        InvalidDiff: the old lines of a hunk stand nowhere, or in several places but not at the given one.
    """
    lines = split_lines(before)
    shift = 0
    reached = 0
    for number, hunk in enumerate(patch.hunks, start=1):
        old = hunk.old
        wanted = max(hunk.start - 1, 0) + shift if old else hunk.start + shift
        at = _place(lines, old, wanted, reached)
        if at is None:
            raise InvalidDiff(f"Hunk {number} of {patch.path or patch.old_path} does not apply.")
        lines[at : at + len(old)] = hunk.new
        shift += at - wanted + len(hunk.new) - len(old)
        reached = at + len(hunk.new)
    return "".join(lines)


def apply_patches(diff: str, texts: Mapping[str, str]) -> dict[str, str | None]:
    """The changed texts by path; None for a file that the diff removes.

    Raises:
        InvalidDiff: the diff cannot be read, names an unknown file, leaves the folder, or does not apply.
    """
    changed: dict[str, str | None] = {}
    for patch in parse_diff(diff):
        path = patch.path or patch.old_path
        if path.startswith("/") or ".." in path.split("/") or not path:
            raise InvalidDiff(f"The path {path!r:.100} leaves the folder.")
        before = changed.get(path, texts.get(path))
        if before is None:
            if patch.old_path:
                raise InvalidDiff(f"There is no file {path!r:.100}.")
            before = ""
        after = apply_patch(patch, before)
        changed[path] = after if patch.path else None
    return changed


def split_lines(text: str) -> list[str]:
    """Lines with their ends; only LF ends one, as in git."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _path(header: str) -> str:
    name = header[4:].split("\t")[0].rstrip("\r\n")
    if name == _NOWHERE:
        return ""
    return name[2:] if name.startswith(("a/", "b/")) else name


def _hunk(lines: list[str], at: int, match: "re.Match[str]") -> tuple[Hunk, int]:
    hunk = Hunk(int(match[1]))
    old = 1 if match[2] is None else int(match[2])
    new = 1 if match[4] is None else int(match[4])
    at += 1
    while old > 0 or new > 0:
        if at >= len(lines):
            raise InvalidDiff(f"The hunk at old line {hunk.start} ends early.")
        line = lines[at]
        mark = (
            " " if line in ("\n", "\r\n") else line[:1]
        )  # some tools strip the blank of empty lines
        text = line if line in ("\n", "\r\n") else line[1:]
        if mark not in (" ", "-", "+"):
            raise InvalidDiff(f"Line {at + 1} of the diff belongs to no hunk.")
        hunk.lines.append((mark, text))
        old -= mark != "+"
        new -= mark != "-"
        at += 1
        if at < len(lines) and lines[at].startswith("\\"):
            hunk.lines[-1] = (mark, text.removesuffix("\n"))
            at += 1
    if old < 0 or new < 0:
        raise InvalidDiff(f"The hunk at old line {hunk.start} is longer than it says.")
    return hunk, at


def _place(lines: list[str], old: list[str], wanted: int, reached: int) -> int | None:
    """Where the old lines stand: at `wanted`, or at the single other place after earlier hunks."""
    if wanted >= reached and lines[wanted : wanted + len(old)] == old and wanted <= len(lines):
        return wanted
    if not old:
        return None
    places = [
        at
        for at in range(reached, len(lines) - len(old) + 1)
        if lines[at] == old[0] and lines[at : at + len(old)] == old
    ]
    return places[0] if len(places) == 1 else None
