"""Edits of source text by the nodes of its syntax tree."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule, module_of
from agents.workspace.source_file import SourceFile

Edit = tuple[int, int, str]
"""Half-open range of characters of the text, and what replaces it."""


@dataclass(frozen=True, slots=True)
class Fix:
    """The text after a fix, and the reason for it in one sentence."""

    text: str
    reason: str


class Target:
    """A finding's place in a Python file, with what fixers ask about it."""

    def __init__(self, file: SourceFile, module: PythonModule, finding: Finding) -> None:
        self.file = file
        self.module = module
        self.finding = finding

    @classmethod
    def of(cls, file: SourceFile, finding: Finding) -> "Target | None":
        """The target, or None if the file is no valid Python."""
        module = module_of(file)
        return cls(file, module, finding) if module is not None else None

    def nodes(self) -> Iterator[ast.AST]:
        """The nodes that touch the finding's lines; those that begin there first."""
        first, last = self.finding.line, max(self.finding.line, self.finding.end_line)
        touching = [
            node
            for node in self.module.nodes
            if hasattr(node, "lineno")
            and node.lineno <= last
            and (getattr(node, "end_lineno", None) or 0) >= first
        ]
        starting = [node for node in touching if first <= getattr(node, "lineno", 0) <= last]
        yield from starting
        yield from (node for node in touching if node not in starting)

    def calls(self) -> Iterator[ast.Call]:
        """The calls among `nodes`."""
        return (node for node in self.nodes() if isinstance(node, ast.Call))

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.file.lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def offset(self, line: int, column: int) -> int:
        """The character at a line from 1 and a column in UTF-8 bytes."""
        text = self.file.lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The characters of a node, half-open."""
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.file.text[start:end]

    def replace(self, node: ast.AST, text: str) -> Edit:
        """The edit that puts `text` in the place of a node."""
        return (*self.span(node), text)

    def fix(self, reason: str, *edits: Edit, imports: Iterable[str] = ()) -> Fix:
        """The fix of these edits, with the modules imported that it needs."""
        text = apply_edits(self.file.text, edits)
        for name in imports:
            text = with_import(text, name)
        return Fix(text, reason)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap."""
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def with_import(text: str, module: str) -> str:
    """The text with `import module`, after the docstring and the `__future__` imports, unless it is there."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    line = 0
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            if any(alias.name == module and alias.asname is None for alias in statement.names):
                return text
        is_docstring = (
            statement is tree.body[0]
            and isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
        )
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if is_docstring or is_future:
            line = statement.end_lineno or 0
    lines = text.split("\n")
    if line == 0:
        while line < len(lines) and lines[line].startswith("#"):
            line += 1
    elif line < len(lines) and not lines[line].strip():
        line += 1
    return "\n".join([*lines[:line], f"import {module}", *lines[line:]])
