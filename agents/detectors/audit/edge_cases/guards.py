"""Whether a value was checked before it is used.

A guard is any test that mentions the value: an enclosing `if`, `while`, `and`, conditional expression or
comprehension filter, an earlier `if` of an enclosing block that leaves it or rebinds the value, an assertion,
or a `try` whose handlers catch what would be raised. The direction of a test is not evaluated.
"""

import ast
from collections.abc import Iterator

from agents.detectors.audit.python_module import (
    COMPREHENSIONS,
    PythonModule,
    bound_names,
    own_nodes,
    shape,
    terminates,
)

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
_BROAD = frozenset(["Exception", "BaseException"])


def guarded(module: PythonModule, node: ast.AST, value: ast.expr, *raised: str) -> bool:
    """Whether `value` was tested before `node`, or one of the exceptions `raised` is caught."""
    subjects = _subjects(module, node, value)
    return _guarded_by(module, node, subjects) or catches(module, node, *raised)


def catches(module: PythonModule, node: ast.AST, *raised: str) -> bool:
    """Whether an enclosing `try` or `suppress` catches one of the exceptions, or all of them."""
    child = node
    for ancestor in module.ancestors(node):
        if isinstance(ancestor, ast.Try) and child in ancestor.body:
            for handler in ancestor.handlers:
                if handler.type is None or _names(handler.type) & (_BROAD | set(raised)):
                    return True
        elif isinstance(ancestor, ast.With):
            for item in ancestor.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and shape(call.func).endswith(("suppress", "raises")):
                    return True
        elif isinstance(ancestor, _SCOPES):
            return False
        child = ancestor
    return False


def definition(module: PythonModule, node: ast.AST, name: str) -> ast.expr | None:
    """The value of the only assignment to a local name in the function around `node`, if it is one."""
    function = module.function_of(node)
    scope = function if function is not None else module.tree
    known = module.definitions.get(scope)
    if known is None:
        known = module.definitions[scope] = _definitions(module, scope)
    return known.get(name)


def _definitions(module: PythonModule, scope: ast.AST) -> dict[str, ast.expr | None]:
    """The value of each name that a scope binds by one assignment only; None for the others."""
    found: dict[str, ast.expr | None] = {}

    def bind(name: str, value: ast.expr | None) -> None:
        found[name] = None if name in found else value

    for inner in own_nodes(scope):
        if isinstance(inner, ast.Assign):
            for target in inner.targets:
                if isinstance(target, ast.Name):
                    bind(target.id, inner.value)
        elif isinstance(inner, ast.AnnAssign | ast.NamedExpr):
            if isinstance(inner.target, ast.Name):
                bind(inner.target.id, inner.value)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            parent = module.parent.get(inner)
            if not isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                found[inner.id] = None
    return found


def _names(node: ast.expr) -> set[str]:
    kinds = node.elts if isinstance(node, ast.Tuple) else [node]
    return {shape(kind).rsplit(".", 1)[-1] for kind in kinds}


def _subjects(module: PythonModule, node: ast.AST, value: ast.expr) -> set[str]:
    """The shapes whose test counts: the value, what `len` and the like measure, and its definition's."""
    found: set[str] = set()
    stack: list[tuple[ast.expr, int]] = [(value, 0)]
    while stack:
        current, depth = stack.pop()
        if isinstance(current, ast.Constant) or depth > 3:
            continue
        found.add(shape(current))
        if isinstance(current, ast.Call):
            # Constructors and measures of a value are empty, zero or None where the value is.
            stack += [(argument, depth + 1) for argument in current.args[:2]]
            if isinstance(current.func, ast.Attribute):
                stack.append((current.func.value, depth + 1))
        elif isinstance(current, ast.BinOp):
            stack += [(current.left, depth + 1), (current.right, depth + 1)]
        elif isinstance(current, ast.Attribute | ast.Subscript | ast.Await | ast.Starred):
            if depth < 2:
                stack.append((current.value, depth + 1))
        elif isinstance(current, COMPREHENSIONS) and not isinstance(current, ast.DictComp):
            if not any(generator.ifs for generator in current.generators):
                stack.append((current.generators[0].iter, depth + 1))
        elif isinstance(current, ast.Name):
            defined = definition(module, node, current.id)
            if defined is not None:
                stack.append((defined, depth + 1))
    return found


def _guarded_by(module: PythonModule, node: ast.AST, subjects: set[str]) -> bool:
    child = node
    for ancestor in module.ancestors(node):
        if isinstance(ancestor, ast.If | ast.While | ast.IfExp):
            if child is not ancestor.test and _mentions(ancestor.test, subjects):
                return True
        elif isinstance(ancestor, ast.BoolOp):
            earlier = (
                ancestor.values[: ancestor.values.index(child)] if child in ancestor.values else []
            )
            if any(_mentions(value, subjects) for value in earlier):
                return True
        elif isinstance(ancestor, COMPREHENSIONS):
            if any(
                child is not generator
                and (
                    any(_mentions(t, subjects) for t in generator.ifs)
                    or shape(generator.iter) in subjects
                )
                for generator in ancestor.generators
            ):
                return True
        elif isinstance(ancestor, ast.For | ast.AsyncFor) and child in ancestor.body:
            if _mentions(ancestor.iter, subjects):
                return True
        elif isinstance(ancestor, ast.Match) and _mentions(ancestor.subject, subjects):
            return True
        if any(_tests(statement, subjects) for statement in _earlier(ancestor, child)):
            return True
        if isinstance(ancestor, _SCOPES):
            return False
        child = ancestor
    return False


def _earlier(parent: ast.AST, child: ast.AST) -> Iterator[ast.stmt]:
    """The statements before `child` in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            yield from block[: block.index(child)]


def _tests(statement: ast.stmt, subjects: set[str]) -> bool:
    if isinstance(statement, ast.Assert):
        return _mentions(statement.test, subjects)
    if isinstance(statement, ast.While):
        return _mentions(statement.test, subjects)
    if isinstance(statement, ast.If) and _mentions(statement.test, subjects):
        return (
            terminates(statement.body)
            or terminates(statement.orelse)
            or any(bound_names(one) & subjects for one in (*statement.body, *statement.orelse))
            or any(_changes(one, subjects) for one in statement.body)
        )
    if isinstance(statement, ast.Match):
        return _mentions(statement.subject, subjects)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        name = shape(statement.value.func).rsplit(".", 1)[-1].lower()
        checks = name.startswith(
            ("check", "_check", "require", "validate", "_validate", "ensure", "assert")
        )
        return checks and any(_mentions(argument, subjects) for argument in statement.value.args)
    return False


def _changes(statement: ast.stmt, subjects: set[str]) -> bool:
    """`items.append(x)` under `if not items:`, or an assignment to an attribute that is tested."""
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            if shape(inner) in subjects:
                return True
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if shape(inner.func.value) in subjects and inner.func.attr in (
                "append",
                "add",
                "extend",
            ):
                return True
    return False


def _mentions(test: ast.expr, subjects: set[str]) -> bool:
    return any(isinstance(inner, ast.expr) and shape(inner) in subjects for inner in ast.walk(test))
