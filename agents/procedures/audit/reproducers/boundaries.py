"""Tests that call a function with the value that breaks it: zero, nothing, the end of a sequence."""

import ast
from collections.abc import Mapping

from agents.api.finding import Finding
from agents.detectors.audit.python_module import FunctionNode, PythonModule, parameters, shape
from agents.procedures.audit.reproducers.calls import call_of, function_at, source_parameter
from agents.procedures.audit.reproducers.reproducer import Reproducer

RAISED: Mapping[str, str] = {
    "unguarded-division": "ZeroDivisionError",
    "empty-index": "IndexError",
    "empty-reduction": "ValueError",
    "off-by-one": "IndexError",
    "unguarded-next": "StopIteration",
}
"""What the code raises before the fix, by rule."""


def boundary_test(module: PythonModule, finding: Finding) -> Reproducer | None:
    """A test that the function bears its boundary value, or None."""
    raised = RAISED.get(finding.rule)
    function = function_at(module, finding.line)
    if raised is None or function is None:
        return None
    trigger = _trigger(function, finding)
    call = call_of(module, function, trigger) if trigger else None
    if call is None:
        return None
    body = (
        f"try:\n    {call}\nexcept {raised} as error:\n"
        f'    pytest.fail(f"{function.name} raised {raised}: {{error}}")\n'
    )
    if raised == "ValueError":
        body = (
            f'try:\n    {call}\nexcept ValueError as error:\n    assert "empty" not in str(error) or '
            '"iterable" not in str(error) and "sequence" not in str(error), error\n'
        )
    else:
        body += "except (ValueError, TypeError):\n    pass  # the argument is refused with a typed error\n"
    imports = ("asyncio",) if call.startswith("asyncio.") else ()
    shown = call.removeprefix("module.")
    return Reproducer("behaviour", body, f"{shown} must not raise {raised}.", imports)


def default_test(module: PythonModule, finding: Finding) -> Reproducer | None:
    """A test that a call does not change the function's default values, or None."""
    function = function_at(module, finding.line)
    if finding.rule not in ("mutable-default", "B006") or function is None:
        return None
    call = call_of(module, function, {})
    if call is None or function not in module.tree.body:
        return None
    own = f"module.{function.name}"
    body = (
        f"before = copy.deepcopy(({own}.__defaults__, {own}.__kwdefaults__))\n"
        f"for _ in range(2):\n    {call}\n"
        f"assert ({own}.__defaults__, {own}.__kwdefaults__) == before\n"
    )
    imports = ("copy", "asyncio") if call.startswith("asyncio.") else ("copy",)
    return Reproducer("behaviour", body, f"Calls of {function.name} share no value.", imports)


def _trigger(function: FunctionNode, finding: Finding) -> dict[str, str] | None:
    """The argument that breaks the function, as source by parameter name."""
    names = {one.arg: one for one in parameters(function)}
    for node in ast.walk(function):
        line = getattr(node, "lineno", 0)
        if not finding.line <= line <= finding.end_line:
            continue
        if finding.rule == "unguarded-division" and isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
                divisor = _resolved(function, node.right)
                if isinstance(divisor, ast.Name) and divisor.id in names:
                    return {divisor.id: "0"}
                if isinstance(divisor, ast.Call) and shape(divisor.func) in ("len", "sum"):
                    argument = divisor.args[0] if divisor.args else None
                    if isinstance(argument, ast.Name) and argument.id in names:
                        return {argument.id: _empty(names[argument.id])}
        elif finding.rule == "empty-index" and isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id in names:
                return {node.value.id: _empty(names[node.value.id])}
        elif finding.rule == "empty-reduction" and isinstance(node, ast.Call) and node.args:
            name = source_parameter(function, node.args[0])
            if name is not None:
                return {name: _empty(names[name])}
        elif finding.rule == "unguarded-next" and isinstance(node, ast.Call) and node.args:
            name = source_parameter(function, node.args[0])
            if shape(node.func) == "next" and name is not None:
                return {name: _empty(names[name])}
        elif finding.rule == "off-by-one":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and shape(inner.func) == "len" and inner.args:
                    if isinstance(inner.args[0], ast.Name) and inner.args[0].id in names:
                        return {inner.args[0].id: "[1, 2, 3]"}
    return None


def _resolved(function: FunctionNode, node: ast.expr) -> ast.expr:
    """The value of a name assigned once in the function."""
    if isinstance(node, ast.Name):
        values = [
            inner.value
            for inner in ast.walk(function)
            if isinstance(inner, ast.Assign) and any(shape(t) == node.id for t in inner.targets)
        ]
        if len(values) == 1:
            return values[0]
    return node


def _empty(parameter: ast.arg) -> str:
    annotation = shape(parameter.annotation) if parameter.annotation is not None else ""
    for word, value in (
        ("dict", "{}"), ("Mapping", "{}"), ("str", '""'), ("set", "set()"), ("tuple", "()"), ("bytes", 'b""'),
    ):  # fmt: skip
        if annotation.startswith(word):
            return value
    return "[]"
