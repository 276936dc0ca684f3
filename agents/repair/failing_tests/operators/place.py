"""`Place`: the function or assignment that operators change, and how they say what they change."""

import ast
from dataclasses import dataclass, field
from functools import cached_property

from agents.detectors.audit.python_module import PythonModule

Edit = tuple[int, int, str]
"""Start and end in the file's text, half-open, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """One small change.

    Attributes:
        edits: in the file's text; they do not overlap.
        what: the change in a few words.
        tier: 0 for a change that mends what is wrong by itself, 1 for a usual slip, 2 for a rarer one.
        line: where it is, from 1.
    """

    edits: tuple[Edit, ...]
    what: str
    tier: int
    line: int

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text


@dataclass(frozen=True)
class Place:
    """What may be changed.

    Attributes:
        module: the file.
        text: its text, with line feeds alone at the ends of lines.
        node: the function or the assignment.
        raised: names of the exceptions that the failing tests saw.
        expected: names of those that they wanted to see.
    """

    module: PythonModule
    text: str
    node: ast.stmt
    raised: frozenset[str] = field(default_factory=frozenset)
    expected: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the place, outer before inner; those of annotations and docstrings are left out."""
        found: list[ast.AST] = []
        work: list[ast.AST] = [self.node]
        while work:
            node = work.pop(0)
            found.append(node)
            for name, value in ast.iter_fields(node):
                if name in ("annotation", "returns", "type_params"):
                    continue
                children = value if isinstance(value, list) else [value]
                work += [
                    one for one in children if isinstance(one, ast.AST) and not _is_docstring(one)
                ]
        return found

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def offset(self, line: int, column: int) -> int:
        """Place in the text of a line, from 1, and a column in UTF-8 bytes."""
        row = self._lines[line - 1]
        return self._starts[line - 1] + len(row.encode()[:column].decode("utf-8", "replace"))

    def range(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node in the text."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end = self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return self.offset(line, column), end

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.range(node)
        return self.text[start:end]

    def replace(self, node: ast.AST, new: str, what: str, tier: int) -> Change:
        """Another text for a node."""
        return Change(((*self.range(node), new),), what, tier, node.lineno)  # type: ignore[attr-defined]

    def swap(self, one: ast.AST, other: ast.AST, what: str, tier: int) -> Change:
        """The texts of two nodes exchanged."""
        edits = ((*self.range(one), self.source(other)), (*self.range(other), self.source(one)))
        return Change(edits, what, tier, one.lineno)  # type: ignore[attr-defined]

    def between(self, left: ast.AST, right: ast.AST, old: str, new: str) -> Edit | None:
        """Another text for an operator between two nodes; None if it is not there once."""
        start, end = self.range(left)[1], self.range(right)[0]
        gap = self.text[start:end]
        if gap.count(old) != 1:
            return None
        at = start + gap.index(old)
        return at, at + len(old), new

    def margin(self, statement: ast.stmt) -> str:
        """The white space before a statement."""
        row = self._lines[statement.lineno - 1]
        return row[: len(row) - len(row.lstrip())]

    def alone(self, statement: ast.stmt) -> bool:
        """Whether a statement has its lines for itself."""
        first, last = (
            self._lines[statement.lineno - 1],
            self._lines[(statement.end_lineno or 1) - 1],
        )
        before = first.encode()[: statement.col_offset].decode("utf-8", "replace")
        after = last.encode()[statement.end_col_offset or 0 :].decode("utf-8", "replace").strip()
        return not before.strip() and (not after or after.startswith("#"))

    def insert_before(self, statement: ast.stmt, lines: str, what: str, tier: int) -> Change | None:
        """New lines, without their margin, before a statement; None if it shares its line."""
        if not self.alone(statement):
            return None
        at = self._starts[statement.lineno - 1]
        return Change(((at, at, self._indented(lines, statement)),), what, tier, statement.lineno)

    def insert_after(self, statement: ast.stmt, lines: str, what: str, tier: int) -> Change | None:
        """New lines, without their margin, after a statement; None if it shares its line."""
        if not self.alone(statement):
            return None
        at = self._starts[statement.end_lineno or 1]
        return Change(((at, at, self._indented(lines, statement)),), what, tier, statement.lineno)

    def _indented(self, lines: str, statement: ast.stmt) -> str:
        margin = self.margin(statement)
        return "".join(f"{margin}{line}\n" for line in lines.split("\n"))

    @cached_property
    def blocks(self) -> list[list[ast.stmt]]:
        """All lists of statements inside of the place."""
        found = []
        for node in self.nodes:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    found.append(block)
        return found

    @property
    def parameters(self) -> list[ast.arg]:
        """Those of the function, `self` and `cls` left out; none for an assignment."""
        if not isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        given = self.node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        return [one for one in every if one.arg not in ("self", "cls")]

    @property
    def first_statement(self) -> ast.stmt | None:
        """The function's first statement after its docstring."""
        if not isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        return next((one for one in self.node.body if not _is_docstring(one)), None)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
