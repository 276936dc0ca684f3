"""Calls of a project's function with values of a test's choice, as source text."""

import ast
import re
from collections.abc import Mapping

from agents.detectors.audit.python_module import FunctionNode, PythonModule, shape

_BY_ANNOTATION = (
    ("int", "1"), ("float", "1.0"), ("str", '"a"'), ("bool", "True"), ("bytes", 'b"a"'), ("list", "[1, 2]"),
    ("Sequence", "[1, 2]"), ("Iterable", "[1, 2]"), ("Collection", "[1, 2]"), ("dict", "{}"), ("Mapping", "{}"),
    ("tuple", "(1, 2)"), ("set", "{1, 2}"),
)  # fmt: skip
_BY_NAME = (
    (r"text|name|value|data|message|title|query|host|command|user|key|token|word|label|suffix|prefix|id$", '"a"'),
    (r"count|size|index|limit|number|port|width|height|total|length|^n$|amount|page|age|days|seconds", "1"),
    (r"values|items|rows|lines|numbers|names|entries|list|scores|prices", "[1, 2]"),
    (r"flag|enabled|verbose|dry_run|strict", "True"),
)  # fmt: skip


def function_at(module: PythonModule, line: int) -> FunctionNode | None:
    """The innermost function around a line."""
    inside = [f for f in module.functions if f.lineno <= line <= (f.end_lineno or 0)]
    return inside[-1] if inside else None


def call_of(module: PythonModule, function: FunctionNode, given: Mapping[str, str]) -> str | None:
    """The call of a function as a test writes it, or None if it cannot be called without knowing more.

    Functions at the top of a module can be called, and methods of classes that are created without arguments.

    Args:
        module: its module.
        function: the function.
        given: source text of arguments by parameter; the others get ordinary values.
    """
    callee = _callee(module, function)
    if callee is None or function.args.vararg or function.args.kwarg:
        return None
    parameters = [*function.args.posonlyargs, *function.args.args]
    if callee[1]:
        parameters = parameters[1:]
    arguments = []
    required = len(parameters) - len(function.args.defaults)
    for index, parameter in enumerate(parameters):
        value = given.get(parameter.arg)
        if value is None and index >= required:
            continue
        value = value or ordinary_value(parameter, function)
        if value is None:
            return None
        named = "" if parameter in function.args.posonlyargs else f"{parameter.arg}="
        arguments.append(f"{named}{value}")
    for parameter, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        value = given.get(parameter.arg)
        if value is None and default is not None:
            continue
        value = value or ordinary_value(parameter, function)
        if value is None:
            return None
        arguments.append(f"{parameter.arg}={value}")
    call = f"{callee[0]}({', '.join(arguments)})"
    return f"asyncio.run({call})" if isinstance(function, ast.AsyncFunctionDef) else call


def _callee(module: PythonModule, function: FunctionNode) -> tuple[str, bool] | None:
    """How a test names the function, and whether its first parameter is bound."""
    decorators = [shape(one) for one in function.decorator_list]
    if function in module.tree.body:
        return (f"module.{function.name}", False) if not decorators else None
    owner = module.class_of(function)
    if owner is None or owner not in module.tree.body or owner.decorator_list:
        return None
    if decorators == ["staticmethod"]:
        return f"module.{owner.name}.{function.name}", False
    if decorators == ["classmethod"]:
        return f"module.{owner.name}.{function.name}", True
    made = next((one for one in owner.body if getattr(one, "name", "") == "__init__"), None)
    plain = made is None and not owner.bases
    if isinstance(made, ast.FunctionDef):
        asked = made.args
        plain = len(asked.args) - len(asked.defaults) <= 1 and not asked.kwonlyargs
    if decorators or not plain or not function.args.args:
        return None
    return f"module.{owner.name}().{function.name}", True


def ordinary_value(parameter: ast.arg, function: FunctionNode) -> str | None:
    """A harmless value for a parameter that does not matter, or None if nothing tells its type."""
    annotation = shape(parameter.annotation) if parameter.annotation is not None else ""
    for word, value in _BY_ANNOTATION:
        if annotation.startswith(word):
            return value
    if annotation:
        return None
    name = parameter.arg
    uses = [node for node in ast.walk(function) if isinstance(node, ast.expr | ast.stmt | ast.For)]
    if any(isinstance(node, ast.Attribute) and shape(node.value) == name for node in uses):
        return None
    if any(
        isinstance(node, ast.BinOp) and name in (shape(node.left), shape(node.right))
        for node in uses
    ):
        return "1"
    if any(isinstance(node, ast.For) and shape(node.iter) == name for node in uses):
        return "[1, 2]"
    for pattern, value in _BY_NAME:
        if re.search(pattern, name):
            return value
    return None


def source_parameter(function: FunctionNode, node: ast.AST) -> str | None:
    """The parameter that an expression is made of, through names that are assigned once; None if several or none."""
    names = {
        one.arg
        for one in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    } - {"self", "cls"}
    seen: set[str] = set()
    work, found = [node], []
    while work:
        for inner in ast.walk(work.pop()):
            if not isinstance(inner, ast.Name) or inner.id in seen:
                continue
            seen.add(inner.id)
            if inner.id in names:
                found.append(inner.id)
            values = [
                one.value
                for one in ast.walk(function)
                if isinstance(one, ast.Assign) and any(shape(t) == inner.id for t in one.targets)
            ]
            work += values if len(values) == 1 else []
    return found[0] if len(found) == 1 else None
