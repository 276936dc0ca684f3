"""What of a Python function comes from the client: parts of the request, and names that hold them."""

import ast
import re
from collections.abc import Mapping

from agents.detectors.audit.python_module import FunctionNode, PythonModule
from agents.detectors.python_names import argument, constant

_PARTS = r"(args|form|values|json|get_json\(.*\)|json\(\)|headers|cookies|GET|POST|COOKIES|META|query_params|data|query)"
_REQUEST = re.compile(
    rf"^(await )?\(?(await )?(self\.)?(flask\.|\w+\.)?(request|req)\.{_PARTS}\)?$"
)


def may_read_requests(module: PythonModule) -> bool:
    """Whether a module names a request at all. Most do not, and need not be walked."""
    return "req" in module.file.text


def client_values(module: PythonModule, function: FunctionNode) -> Mapping[str, ast.expr]:
    """Names that a function binds once, to the request's data or a value of it."""
    if not may_read_requests(module):
        return {}
    found: dict[str, ast.expr | None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found[target.id] = None if target.id in found else node.value
    bound = {name: value for name, value in found.items() if value is not None}
    return {
        name: value
        for name, value in bound.items()
        if _is_part(value) or requested_key(value, bound)
    }


def is_client_value(node: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Whether an expression is a value that the client sends."""
    if isinstance(node, ast.Name):
        return node.id in values and not _is_part(values[node.id])
    return bool(requested_key(node, values))


def requested_key(node: ast.expr, values: Mapping[str, ast.expr]) -> str:
    """The key that is read of a request's arguments, form, body, headers or cookies; empty otherwise.

    Args:
        node: the expression.
        values: names that hold the request's data.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr != "get":
            return ""
        owner, key = node.func.value, constant(argument(node, 0))
    elif isinstance(node, ast.Subscript):
        owner, key = node.value, constant(node.slice)
    else:
        return ""
    if isinstance(owner, ast.Name):
        owner = values.get(owner.id, owner)
    return key if isinstance(key, str) and _is_part(owner) else ""


def _is_part(node: ast.expr) -> bool:
    """`request.form`, `request.get_json()`, `await request.json()`, `request.json or {}`."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        node = node.values[0]
    return _REQUEST.match(ast.unparse(node)) is not None
