"""`probed_text`: the changed file with a statement that raises where the change is.

If the tests pass with it, they never run the changed code, so that they prove nothing about it.
"""

import ast
import difflib

MARK = "pravaha ran this line"


def probed_text(before: str, after: str) -> str | None:
    """The changed text with `raise` before the first changed statement; None if it fits nowhere."""
    try:
        tree = ast.parse(after)
    except (SyntaxError, ValueError):
        return None
    lines = after.split("\n")
    for number in _changed_lines(before.split("\n"), lines):
        statement = _statement_at(tree, number)
        if statement is None or isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        line = lines[statement.lineno - 1]
        margin = line[: len(line) - len(line.lstrip())]
        if len(margin.encode()) != statement.col_offset:
            continue  # another statement is on the same line
        probed = [*lines]
        probed.insert(statement.lineno - 1, f"{margin}raise RuntimeError({MARK!r})")
        text = "\n".join(probed)
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        return text
    return None


def _changed_lines(before: list[str], after: list[str]) -> list[int]:
    """Numbers of the lines of `after`, from 1, that a change replaced or added."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    found: list[int] = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            found += range(start + 1, max(end, start + 1) + 1)
    return found


def _statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost statement that covers a line; for the head of a function, its first statement."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        covers = node.lineno <= line <= (node.end_lineno or node.lineno)
        if covers and (found is None or node.lineno >= found.lineno):
            found = node
    while isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and found.body:
        first = found.body[0]
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        found = found.body[1] if documented and len(found.body) > 1 else first
    return found
