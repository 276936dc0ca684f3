"""Damage that needs no parser: merge-conflict markers, bytes that are not UTF-8, mixed indentation."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.syntax.rules import INVALID_UTF8, MERGE_CONFLICT, MIXED_TABS
from agents.workspace.source_file import SourceFile

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PROSE = frozenset(["markdown", "rst", "text"])


def check_text(file: SourceFile) -> Iterator[Finding]:
    """Findings about the file's text as such."""
    for line in conflict_lines(file):
        yield MERGE_CONFLICT.at(
            file, line, "A merge conflict was not resolved: keep one side and remove the markers."
        )
    yield from _encoding(file)
    if file.language == "python":
        yield from _mixed_tabs(file)


def conflict_lines(file: SourceFile) -> Iterator[int]:
    """The lines `<<<<<<<` of conflicts whose other markers follow, as git writes them."""
    opened = 0
    divided = False
    for number, line in enumerate(file.lines, 1):
        if line.startswith("<<<<<<< "):
            opened, divided = number, False
        elif opened and line == "=======":
            divided = True
        elif opened and divided and line.startswith(">>>>>>> "):
            if not (file.language in _PROSE and file.lines[max(0, opened - 2)].startswith("```")):
                yield opened
            opened = 0


def _encoding(file: SourceFile) -> Iterator[Finding]:
    if file.language is None:
        return
    try:
        file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if file.data[:2] in (b"\xff\xfe", b"\xfe\xff") or _declares_encoding(file.data):
            return
        line = file.data.count(b"\n", 0, error.start) + 1
        yield INVALID_UTF8.at(
            file,
            line,
            f"The byte 0x{file.data[error.start]:02x} is not UTF-8: save the file as UTF-8.",
        )


def _declares_encoding(data: bytes) -> bool:
    return any(
        (match := _CODING.match(line)) and match[1].lower() not in (b"utf-8", b"utf8")
        for line in data.split(b"\n", 2)[:2]
    )


def _mixed_tabs(file: SourceFile) -> Iterator[Finding]:
    """The first line whose indentation has a tab after spaces, or tabs where other lines have spaces.

    Lines within string literals do not count, so the tokens of a valid file decide.
    """
    if file.python is None:
        return  # TabError is reported by the parser
    spaced = False
    inside = _lines_in_strings(file)
    for number, line in enumerate(file.lines, 1):
        margin = line[: len(line) - len(line.lstrip(" \t"))]
        if number in inside or not line.strip():
            continue
        if " \t" in margin or ("\t" in margin and spaced):
            yield MIXED_TABS.at(
                file, number, "The indentation mixes tabs and spaces: use spaces throughout."
            )
            return
        spaced = spaced or margin.startswith("  ")


def _lines_in_strings(file: SourceFile) -> set[int]:
    """Lines that continue a string literal or a bracket."""
    import ast

    found: set[int] = set()
    for node in ast.walk(file.python) if file.python else ():
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if isinstance(node, ast.expr) and last > first:
            found.update(range(first + 1, last + 1))
    return found
