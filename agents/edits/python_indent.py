"""Indentation of Python code: moving a definition to another depth, in the style of another file."""

import ast
from collections.abc import Sequence

from agents.edits.source_lines import leading_space

_DEFAULT = "    "


def indent_unit(tree: ast.AST, lines: Sequence[str]) -> str:
    """One step of the indentation of a program; four blanks if it has none."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body:
            outer = leading_space(lines[node.lineno - 1])
            inner = leading_space(lines[body[0].lineno - 1])
            if body[0].lineno > node.lineno and len(inner) > len(outer) and inner.startswith(outer):
                return inner[len(outer) :]
    return _DEFAULT


def moved(
    node: ast.stmt, lines: Sequence[str], first: int, *, unit: str, to: str, to_unit: str
) -> list[str]:
    """The lines of a statement at another depth.

    Lines within a string of several lines stay as they are, but for docstrings.

    Args:
        node: the statement.
        lines: of its program.
        first: index of its first line, decorators or comments included.
        unit: one step of its program.
        to: the indentation of the statement at its new place.
        to_unit: one step of the program there.
    """
    base = leading_space(lines[node.lineno - 1])
    end = node.end_lineno or node.lineno
    fixed = _string_rows(node)
    result = []
    for row in range(first, end):
        line = lines[row]
        if row in fixed or not line.strip():
            result.append(line if row in fixed else "")
            continue
        space = leading_space(line)
        inner = space[len(base) :] if space.startswith(base) else ""
        if unit != to_unit:
            steps = 0
            while inner.startswith(unit):
                inner, steps = inner[len(unit) :], steps + 1
            inner = to_unit * steps + inner
        result.append(to + inner + line[len(space) :])
    return result


def _string_rows(node: ast.stmt) -> set[int]:
    """The indices of lines that begin within a string which is no docstring."""
    docstrings = {
        id(body[0].value)
        for each in ast.walk(node)
        if isinstance(body := getattr(each, "body", None), list)
        and body
        and isinstance(body[0], ast.Expr)
    }
    rows: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Constant):
            is_text = isinstance(each.value, (str, bytes)) and id(each) not in docstrings
        elif isinstance(each, ast.JoinedStr):
            is_text = True
        else:
            continue
        if is_text:
            rows.update(range(each.lineno, each.end_lineno or each.lineno))
    return rows
