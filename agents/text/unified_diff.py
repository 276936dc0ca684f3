"""Unified diffs: making them, and applying them.

A hunk applies at exactly the lines that it names and only if its context and removed lines equal the text:
nothing is searched for and nothing is skipped. A diff that a person gave may be `loose`: text around the
hunks is left out, and a hunk also applies at the single other place where its old lines stand. Lines end with
LF only; other control characters belong to them. `apply_diff(make_diff(path, a, b), {path: a})[path] == b`
for all texts.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.api.errors import InvalidTask

MAX_DIFF_CHARS = 2_000_000
NO_NEWLINE = "\\ No newline at end of file"
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(slots=True)
class Hunk:
    """One hunk.

    Attributes:
        start: first line of the old text that it covers, from 1; of an empty range, the line before it.
        old: old lines with their ends.
        new: new lines with their ends.
    """

    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FileDiff:
    """The hunks of one file. `old_path` is None for a new file, `new_path` for a deleted one."""

    old_path: str | None
    new_path: str | None
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The file that changes."""
        return self.new_path or self.old_path or ""


def split_lines(text: str) -> list[str]:
    """The lines with their LF; only the last may lack it."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def make_diff(path: str, old: str | None, new: str | None, *, context: int = 3) -> str:
    """The diff from `old` to `new`; None stands for no file. Empty if both are equal."""
    if old == new:
        return ""
    before = f"a/{path}" if old is not None else "/dev/null"
    after = f"b/{path}" if new is not None else "/dev/null"
    pieces = difflib.unified_diff(
        split_lines(old or ""), split_lines(new or ""), before, after, n=context
    )
    lines = [line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in pieces]
    return "".join(lines) or f"--- {before}\n+++ {after}\n"


_HEADERS = ("diff ", "index ", "new file", "deleted file", "old mode", "new mode", "similarity ")


def parse_diff(diff: str, *, loose: bool = False) -> list[FileDiff]:
    """The files of a diff, with or without git's header lines; `loose` leaves out any other lines, too.

    Raises:
        InvalidTask: the text is no unified diff, its counts are wrong, or it renames or changes binary files.
    """
    if len(diff) > MAX_DIFF_CHARS:
        raise InvalidTask(f"The diff is longer than {MAX_DIFF_CHARS:,} characters.")
    lines = diff.split("\n")
    files: list[FileDiff] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith(("rename ", "copy ", "GIT binary patch", "Binary files ")):
            raise InvalidTask(f"Line {index + 1} of the diff: {line:.40} is not supported.")
        if (
            line.startswith("--- ")
            and index + 1 < len(lines)
            and lines[index + 1].startswith("+++ ")
        ):
            files.append(FileDiff(_path(line[4:]), _path(lines[index + 1][4:])))
            index += 2
        elif line.startswith("@@ "):
            if not files:
                raise InvalidTask(f"Line {index + 1} of the diff: a hunk before any file.")
            hunk, index = _parse_hunk(lines, index)
            files[-1].hunks.append(hunk)
        elif loose or line.startswith(_HEADERS) or not line.strip():
            index += 1
        else:
            raise InvalidTask(f"Line {index + 1} of the diff is not part of a hunk: {line:.60}")
    if not files:
        raise InvalidTask("The text is no unified diff: it names no file.")
    return files


def _path(text: str) -> str | None:
    name = text.split("\t", 1)[0].rstrip("\r")
    if name == "/dev/null":
        return None
    name = name[2:] if name.startswith(("a/", "b/")) else name
    if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise InvalidTask(f"The diff names a path outside the project: {name!r:.80}.")
    return name


def _parse_hunk(lines: list[str], index: int) -> tuple[Hunk, int]:
    match = _HUNK.match(lines[index])
    if match is None or any(group and len(group) > 9 for group in match.groups()):
        raise InvalidTask(f"Line {index + 1} of the diff is no hunk header.")
    old_left = int(match[2]) if match[2] is not None else 1
    new_left = int(match[4]) if match[4] is not None else 1
    hunk = Hunk(int(match[1]))
    index += 1
    while old_left or new_left:
        line = lines[index] if index < len(lines) else None
        mark, body = (line[:1], line[1:] + "\n") if line is not None else ("", "")
        if line == "" and index + 1 < len(lines):
            mark, body = " ", "\n"  # an editor removed the space of an empty context line
        no_newline = index + 1 < len(lines) and lines[index + 1].startswith("\\ ")
        if no_newline:
            body = body[:-1]
        if mark in ("-", " ") and old_left:
            hunk.old.append(body)
            old_left -= 1
        elif mark != "+":
            raise InvalidTask(f"Line {index + 1} of the diff does not belong to its hunk.")
        if mark in ("+", " "):
            if not new_left:
                raise InvalidTask(f"Line {index + 1} of the diff exceeds its hunk.")
            hunk.new.append(body)
            new_left -= 1
        index += 2 if no_newline else 1
    return hunk, index


def apply_file(file: FileDiff, text: str, *, loose: bool = False) -> str:
    """The text after a file's hunks.

    Raises:
        InvalidTask: a hunk does not match the text.
    """
    lines = split_lines(text)
    result: list[str] = []
    position = shift = 0
    for hunk in file.hunks:
        wanted = shift + (hunk.start - 1 if hunk.old else hunk.start)
        start = _place(lines, hunk.old, wanted, position, loose=loose)
        if start is None:
            raise InvalidTask(
                f"{file.path}: the hunk at line {hunk.start} does not match the text."
            )
        shift += start - wanted
        result += lines[position:start] + hunk.new
        position = start + len(hunk.old)
    result += lines[position:]
    if any(not line.endswith("\n") for line in result[:-1]):
        raise InvalidTask(f"{file.path}: a line without its end is not the last one.")
    return "".join(result)


def _place(
    lines: list[str], old: list[str], wanted: int, position: int, *, loose: bool
) -> int | None:
    """The index of a hunk's first old line, not before `position`; None if it has no place."""
    if position <= wanted <= len(lines) and lines[wanted : wanted + len(old)] == old:
        return wanted
    if not loose or not old:
        return None
    last = len(lines) - len(old)
    places = [at for at in range(position, last + 1) if lines[at : at + len(old)] == old]
    return places[0] if len(places) == 1 else None


def apply_diff(
    diff: str, texts: Mapping[str, str], *, loose: bool = False
) -> dict[str, str | None]:
    """The changed files by path; None for a deleted one.

    Raises:
        InvalidTask: the diff is malformed, names a missing file, or does not match exactly.
    """
    changed: dict[str, str | None] = {}
    for file in parse_diff(diff, loose=loose):
        if file.path in changed:
            raise InvalidTask(f"The diff names {file.path} twice.")
        if file.old_path is not None and file.new_path not in (None, file.old_path):
            raise InvalidTask(f"The diff renames {file.old_path}, which is not supported.")
        if file.old_path is None:
            if file.path in texts:
                raise InvalidTask(f"{file.path} exists already.")
            changed[file.path] = apply_file(file, "", loose=loose)
            continue
        if file.old_path not in texts:
            raise InvalidTask(f"There is no file {file.old_path}.")
        after = apply_file(file, texts[file.old_path], loose=loose)
        if file.new_path is None and after:
            raise InvalidTask(f"{file.path} is deleted but not empty afterwards.")
        changed[file.path] = None if file.new_path is None else after
    return changed
