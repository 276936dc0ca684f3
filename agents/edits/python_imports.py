"""The imports that merged code needs: which a file lacks, and where they go."""

import ast
from collections.abc import Collection, Sequence

from agents.api.errors import InvalidTask
from agents.edits.python_nodes import DEFINITION, assigned, definitions, first_row
from agents.edits.source_lines import SourceLines, Splice


def import_splices(
    path: str, source: SourceLines, tree: ast.Module, given: ast.Module, used: Collection[str]
) -> list[Splice]:
    """Splices that add the imports of an answer which its merged code uses and the file does not have.

    Args:
        path: of the file.
        source: its lines.
        tree: its syntax tree.
        given: that of the answer.
        used: names that the merged code uses.

    Raises:
        InvalidTask: an import would bind a name of the file anew.
    """
    future: list[str] = []
    plain: list[str] = []
    for one in given.body:
        if not isinstance(one, (ast.Import, ast.ImportFrom)):
            continue
        is_future = isinstance(one, ast.ImportFrom) and one.module == "__future__"
        fresh = [alias for alias in one.names if is_future or (alias.asname or _top(alias)) in used]
        fresh = _missing(path, tree, one, fresh)
        if fresh:
            only = (
                ast.Import(fresh)
                if isinstance(one, ast.Import)
                else ast.ImportFrom(one.module, fresh, one.level)
            )
            (future if is_future else plain).append(ast.unparse(only))
    return [
        *_inserted(source, tree, future, row_below_docstring(tree.body)),
        *_inserted(source, tree, plain, row_below_imports(tree.body)),
    ]


def _missing(
    path: str, tree: ast.Module, one: ast.Import | ast.ImportFrom, names: Sequence[ast.alias]
) -> list[ast.alias]:
    """The names of an import that the file does not bind."""
    bound = _bound_by_imports(tree)
    defined = {node.name for node in definitions(tree.body)} | {
        name for node in tree.body if (name := assigned(node))
    }
    missing = []
    for alias in names:
        name = alias.asname or _top(alias)
        if _origin(one, alias) in bound.get(name, ()) or name in defined or alias.name == "*":
            continue
        if name in bound and not isinstance(one, ast.Import):
            raise InvalidTask(
                f"The answer imports {name} from elsewhere than {path} does: apply it by hand."
            )
        missing.append(alias)
    return missing


def _inserted(source: SourceLines, tree: ast.Module, lines: list[str], row: int) -> list[Splice]:
    if not lines:
        return []
    has_imports = any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)
    below = source.lines[row] if row < len(source.lines) else ""
    if not has_imports and row:
        lines = ["", *lines]
    elif not has_imports and below.strip():
        lines = [*lines, ""]
    return [Splice(row, row, tuple(lines))]


def _top(alias: ast.alias) -> str:
    return alias.name.partition(".")[0]


def _origin(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(node, ast.Import):
        return f"import {alias.name} as {alias.asname}"
    return f"from {'.' * node.level}{node.module or ''} import {alias.name}"


def _bound_by_imports(tree: ast.Module) -> dict[str, set[str]]:
    """What the imports of a file bind at its top, and from where."""
    bound: dict[str, set[str]] = {}

    def add(body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    name = alias.asname or _top(alias)
                    bound.setdefault(name, set()).add(_origin(node, alias))
            elif isinstance(node, (ast.If, ast.Try)):
                add(node.body)
                add(node.orelse)
                for handler in getattr(node, "handlers", []):
                    add(handler.body)

    add(tree.body)
    return bound


def row_below_docstring(body: Sequence[ast.stmt]) -> int:
    """The line below the docstring of a module, else that of its first statement."""
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first.end_lineno or first.lineno
    return _row_of_first(body)


def _row_of_first(body: Sequence[ast.stmt]) -> int:
    return first_row(body[0]) if body else 0


def row_below_imports(body: Sequence[ast.stmt]) -> int:
    """The line below the first group of imports, else below the docstring."""
    row: int | None = None
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            row = node.end_lineno or node.lineno
        elif row is not None or isinstance(node, DEFINITION):
            break
    return row_below_docstring(body) if row is None else row
