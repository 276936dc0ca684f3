"""What a change must keep: everything outside of the finding's function, and that function's own work.

These rules catch a patch that removes the defect by removing the feature: an emptied body, a deleted
function, a handler that swallows every error, a call of the rest of the program that is gone. They look at
syntax trees, so layout and comments are free.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from agents.detectors.audit.python_module import FunctionNode, PythonModule, shape

_BROAD = frozenset(["Exception", "BaseException", "builtins.Exception", "builtins.BaseException"])
_BLOCK_FIELDS = frozenset(["body", "orelse", "finalbody", "handlers", "cases"])


def lost_code(before: PythonModule, after: PythonModule, first: int, last: int) -> str:
    """What a change of lines `first` to `last` (of `before`) lost or hides, as a sentence; empty if nothing.

    Args:
        before: the file before the change.
        after: the file after it.
        first: first line of the finding, from 1.
        last: its last line.
    """
    function = _function_at(before, first)
    reason = _changed_elsewhere(before, after, function, first, last)
    if reason:
        return reason
    if _broad_handlers(after) > _broad_handlers(before):
        return "The change catches every exception."
    if function is None:
        return ""
    changed = _find(after, _path(before, function))
    if changed is None:
        return f"The change removes {function.name}."
    if _signature(function) != _signature(changed):
        return f"The change alters the parameters of {function.name}."
    return _lost_work(before, function, changed, first, last)


def _function_at(module: PythonModule, line: int) -> FunctionNode | None:
    """The innermost function around a line."""
    inside = [one for one in module.functions if _starts(one) <= line <= (one.end_lineno or 0)]
    return inside[-1] if inside else None


def _starts(function: FunctionNode) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _path(module: PythonModule, function: FunctionNode) -> tuple[str, ...]:
    """Names of the classes and functions around a function, and its own."""
    names = [function.name]
    names += [
        one.name
        for one in module.ancestors(function)
        if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return tuple(reversed(names))


def _find(module: PythonModule, path: tuple[str, ...]) -> FunctionNode | None:
    found = [one for one in module.functions if _path(module, one) == path]
    return found[0] if len(found) == 1 else None


def _changed_elsewhere(
    before: PythonModule, after: PythonModule, function: FunctionNode | None, first: int, last: int
) -> str:
    """Whether code outside of the finding's function (or statement) is another one, imports left out."""
    old = _outside(before, function, first, last)
    path = _path(before, function) if function is not None else ()
    new = _outside(after, _find(after, path) if path else None, 0, 0)
    missing = Counter(old) - Counter(new)
    if missing:
        return f"The change touches other code: {next(iter(missing))!s:.80}"
    added = Counter(new) - Counter(old)
    allowed = (
        0 if function is not None else sum(_touches(one, first, last) for one in before.tree.body)
    )
    if added.total() > allowed:
        return f"The change adds code elsewhere: {next(iter(added))!s:.80}"
    return ""


def _outside(
    module: PythonModule, function: FunctionNode | None, first: int, last: int
) -> list[str]:
    """The module's other code, one text for each statement at the top and each member of a class."""
    found = []
    for statement, inside in _members(module.tree.body, ""):
        if statement is None:
            found.append(inside)
            continue
        if isinstance(statement, ast.Import | ast.ImportFrom) and not inside:
            continue
        if function is not None and _holds(statement, function):
            if statement is not function:
                # A function around the finding's: its own text with that function left out.
                found.append(inside + _without(statement, function))
            continue
        if function is None and first and _touches(statement, first, last):
            continue
        found.append(inside + shape(statement))
    return found


def _members(body: list[ast.stmt], inside: str) -> Iterator[tuple[ast.stmt | None, str]]:
    """Statements with the class that they are in; None with the head of a class."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            head = ", ".join(map(shape, [*statement.decorator_list, *statement.bases]))
            yield None, f"{inside}class {statement.name}({head})"
            yield from _members(statement.body, f"{inside}{statement.name}.")
        else:
            yield statement, inside


def _holds(statement: ast.stmt, function: FunctionNode) -> bool:
    return any(node is function for node in ast.walk(statement))


def _without(statement: ast.stmt, function: FunctionNode) -> str:
    return shape(statement).replace(shape(function), f"def {function.name}")


def _touches(statement: ast.stmt, first: int, last: int) -> bool:
    return statement.lineno <= last and (statement.end_lineno or statement.lineno) >= first


def _broad_handlers(module: PythonModule) -> int:
    """Handlers of every exception, and `suppress(Exception)`."""
    count = 0
    for node in module.nodes:
        if isinstance(node, ast.ExceptHandler):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            count += any(one is None or shape(one) in _BROAD for one in kinds)
        elif isinstance(node, ast.Call) and module.call_name(node) == "contextlib.suppress":
            count += any(shape(one) in _BROAD for one in node.args)
    return count


def _signature(function: FunctionNode) -> str:
    """Name, parameters without annotations and defaults, decorators."""
    given = function.args
    parts = [type(function).__name__, *map(shape, function.decorator_list)]
    parts += [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    parts += [one.arg if one else "-" for one in (given.vararg, given.kwarg)]
    parts += [str(len(given.posonlyargs)), str(len(given.kwonlyargs)), str(len(given.defaults))]
    return " ".join(parts)


def _lost_work(
    module: PythonModule, old: FunctionNode, new: FunctionNode, first: int, last: int
) -> str:
    """Statements beside the finding's, parameters and calls of the program that a function no longer has."""
    kept = Counter(_heads(new, 0, 0))
    missing = Counter(_heads(old, first, last)) - kept
    if missing:
        return f"The change removes other statements of {old.name}: {next(iter(missing))!s:.80}"
    used, still_used = _loaded(old), _loaded(new)
    beside = {name for name in used if name not in _names_at(old, first, last, alone=True)}
    parameters = {
        one.arg for one in [*old.args.posonlyargs, *old.args.args, *old.args.kwonlyargs]
    } - {"self", "cls"}
    for name in sorted(parameters & used):
        if name not in still_used:
            return f"The change no longer uses the parameter {name} of {old.name}."
    own = {one.name for one in module.functions} & used | module.imports.keys() & beside
    for name in sorted(own):
        if name not in still_used:
            return f"{old.name} no longer uses {name}."
    return ""


def _heads(function: FunctionNode, first: int, last: int) -> Iterator[str]:
    """The statements of a function, of a compound one its head; those at the finding's lines left out.

    An assignment of a name that the finding's lines use counts as part of the finding.
    """
    fed = _names_at(function, first, last) if first else set()
    for node in ast.walk(function):
        if not isinstance(node, ast.stmt) or node is function:
            continue
        head_end = min(
            (one.lineno - 1 for block in _blocks(node) for one in block),
            default=node.end_lineno or node.lineno,
        )
        if first and node.lineno <= last and max(head_end, node.lineno) >= first:
            continue
        if isinstance(node, ast.Assign) and any(shape(one) in fed for one in node.targets):
            continue
        fields = [
            ast.dump(value) if isinstance(value, ast.AST) else repr(value)
            for name, value in ast.iter_fields(node)
            if name not in _BLOCK_FIELDS and not isinstance(value, list)
        ]
        lists = [
            ast.dump(one)
            for name, value in ast.iter_fields(node)
            if name not in _BLOCK_FIELDS and isinstance(value, list)
            for one in value
            if isinstance(one, ast.AST)
        ]
        if not isinstance(node, ast.Pass):
            yield f"{type(node).__name__} {' '.join([*fields, *lists])}"


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block


def _names_at(function: FunctionNode, first: int, last: int, *, alone: bool = False) -> set[str]:
    """Names that lines read; with `alone`, those that no other line of the function reads."""
    read = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    here = {node.id for node in read if first <= node.lineno <= last}
    elsewhere = {node.id for node in read if not first <= node.lineno <= last}
    return here - elsewhere if alone else here


def _loaded(function: FunctionNode) -> set[str]:
    return {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
