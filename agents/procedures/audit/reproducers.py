"""Tests that show a finding: by calling the function with the value that breaks it, or by its source.

A behaviour test is written only for functions at the top of a module whose other parameters have values that
are easy to choose. The rest are source checks, and say so.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agents.api.finding import Finding
from agents.detectors.audit.python_module import FunctionNode, PythonModule, parameters, shape


@dataclass(frozen=True, slots=True)
class Reproducer:
    """The body of a test.

    Attributes:
        kind: `behaviour` or `source check`.
        body: statements of the test function; `module` or `tree` is bound before.
        reason: what the test shows, in one sentence.
    """

    kind: Literal["behaviour", "source check"]
    body: str
    reason: str


def reproducer_of(module: PythonModule, finding: Finding) -> Reproducer | None:
    """The reproducer of a finding, or None if no test can show it."""
    return _behaviour(module, finding) or _source_check(finding)


_RAISED = {
    "unguarded-division": "ZeroDivisionError",
    "empty-index": "IndexError",
    "empty-reduction": "ValueError",
    "off-by-one": "IndexError",
    "unguarded-next": "StopIteration",
}


def _behaviour(module: PythonModule, finding: Finding) -> Reproducer | None:
    if finding.rule in ("mutable-default", "B006"):
        return None  # the value after two calls depends on what the function does
    raised = _RAISED.get(finding.rule)
    function = _function_at(module, finding.line)
    if raised is None or function is None or function not in module.tree.body:
        return None
    if isinstance(function, ast.AsyncFunctionDef) or function.decorator_list:
        return None
    if (
        function.args.vararg
        or function.args.kwarg
        or function.args.kwonlyargs
        or function.args.posonlyargs
    ):
        return None
    trigger = _trigger(function, finding)
    if trigger is None:
        return None
    arguments = []
    required = len(function.args.args) - len(function.args.defaults)
    for index, parameter in enumerate(function.args.args):
        if parameter.arg in trigger:
            arguments.append(f"{parameter.arg}={trigger[parameter.arg]}")
        elif index < required:
            value = _ordinary_value(parameter, function)
            if value is None:
                return None
            arguments.append(f"{parameter.arg}={value}")
    call = f"module.{function.name}({', '.join(arguments)})"
    body = (
        f"try:\n    {call}\nexcept {raised} as error:\n"
        f'    pytest.fail(f"{function.name} raised {raised}: {{error}}")\n'
        "except (ValueError, TypeError):\n    pass  # the argument is refused with a typed error\n"
    )
    if raised == "ValueError":
        body = (
            f'try:\n    {call}\nexcept ValueError as error:\n    assert "empty" not in str(error) or '
            '"iterable" not in str(error) and "sequence" not in str(error), error\n'
        )
    return Reproducer("behaviour", body, f"{call[7:]} must not raise {raised}.")


def _function_at(module: PythonModule, line: int) -> FunctionNode | None:
    inside = [f for f in module.functions if f.lineno <= line <= (f.end_lineno or 0)]
    return inside[-1] if inside else None


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
            if isinstance(node.args[0], ast.Name) and node.args[0].id in names:
                return {node.args[0].id: _empty(names[node.args[0].id])}
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
        ("dict", "{}"),
        ("Mapping", "{}"),
        ("str", '""'),
        ("set", "set()"),
        ("tuple", "()"),
    ):
        if annotation.startswith(word):
            return value
    return "[]"


def _ordinary_value(parameter: ast.arg, function: FunctionNode) -> str | None:
    """A harmless value for a parameter that does not matter, or None if nothing tells its type."""
    annotation = shape(parameter.annotation) if parameter.annotation is not None else ""
    for word, value in (
        ("int", "1"), ("float", "1.0"), ("str", '"a"'), ("bool", "True"), ("bytes", 'b"a"'),
        ("list", "[1, 2]"), ("Sequence", "[1, 2]"), ("dict", "{}"),
    ):  # fmt: skip
        if annotation.startswith(word):
            return value
    if annotation:
        return None
    arithmetic = any(
        isinstance(node, ast.BinOp) and parameter.arg in (shape(node.left), shape(node.right))
        for node in ast.walk(function)
    )
    return "1" if arithmetic else None


def _call(*names: str) -> str:
    return f"isinstance(node, ast.Call) and ast.unparse(node.func) in {set(names)!r}"


def _keyword(name: str, value: str) -> str:
    return (
        "isinstance(node, ast.keyword) and "
        f"node.arg == {name!r} and ast.unparse(node.value) == {value!r}"
    )


_BAD_BY_CWE: Mapping[int, str] = {
    78: _keyword("shell", "True"),
    89: "isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "
        "node.func.attr in ('execute', 'executemany') and bool(node.args) and "
        "isinstance(node.args[0], ast.JoinedStr | ast.BinOp)",
    94: _call("eval", "exec"),
    95: _call("eval", "exec"),
    215: _keyword("debug", "True"),
    295: _keyword("verify", "False"),
    327: _call("hashlib.md5", "hashlib.sha1", "md5", "sha1"),
    328: _call("hashlib.md5", "hashlib.sha1", "md5", "sha1"),
    377: _call("tempfile.mktemp", "mktemp"),
    396: "isinstance(node, ast.ExceptHandler) and node.type is None",
    489: _keyword("debug", "True"),
    502: _call("yaml.load", "pickle.loads", "pickle.load"),
    605: "isinstance(node, ast.Constant) and node.value == '0.0.0.0'",
    614: _keyword("secure", "False"),
}  # fmt: skip
_BAD_BY_RULE: Mapping[str, str] = {
    "E711": "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq) and "
            "ast.unparse(node.comparators[0]) == 'None'",
    "is-literal": "isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot) and "
                  "isinstance(node.comparators[0], ast.Constant) and "
                  "node.comparators[0].value not in (None, True, False)",
    "mutable-default": "isinstance(node, ast.arguments) and any(isinstance(d, ast.List | ast.Dict | ast.Set) "
                       "for d in [*node.defaults, *node.kw_defaults])",
    "open-without-encoding": "isinstance(node, ast.Call) and ast.unparse(node.func) == 'open' and "
                             "not any(k.arg == 'encoding' for k in node.keywords) and len(node.args) < 2",
    "self-comparison": "isinstance(node, ast.Compare) and "
                       "ast.unparse(node.left) == ast.unparse(node.comparators[0])",
    "changed-while-iterated": "isinstance(node, ast.For) and any(isinstance(i, ast.Call) and "
                              "isinstance(i.func, ast.Attribute) and i.func.attr in ('remove', 'append', 'pop') "
                              "and ast.unparse(i.func.value) == ast.unparse(node.iter) for i in ast.walk(node))",
    "duplicate-condition": "isinstance(node, ast.If) and any(isinstance(i, ast.If) and "
                           "ast.unparse(i.test) == ast.unparse(node.test) for i in node.orelse)",
}  # fmt: skip
_BAD_BY_RULE = {**_BAD_BY_RULE, "B006": _BAD_BY_RULE["mutable-default"]}


def _source_check(finding: Finding) -> Reproducer | None:
    bad = _BAD_BY_RULE.get(finding.rule) or _BAD_BY_CWE.get(finding.cwe or 0)
    if bad is None:
        return None
    body = (
        f"bad = [\n    node\n    for node in ast.walk(tree)\n    if {bad}\n]\n"
        "found = [getattr(node, 'lineno', 0) for node in bad]\n"
        f'assert not bad, f"{finding.rule} on lines {{found}}"\n'
    )
    return Reproducer(
        "source check",
        body,
        f"The source has no {finding.rule}; the program's behaviour is not tested.",
    )


def source_check_fails(tree: ast.Module, finding: Finding) -> bool:
    """Whether the source check of a finding fails on a tree, as it must before the fix."""
    bad = _BAD_BY_RULE.get(finding.rule) or _BAD_BY_CWE.get(finding.cwe or 0)
    if bad is None:
        return False
    # The expressions are the constants above; nothing of the file takes part but its tree.
    check = compile(bad, "<source check>", "eval")
    # The checks are this module's own texts, which the generated test runs, too.
    return any(eval(check, {"ast": ast, "node": node}) for node in ast.walk(tree))  # noqa: S307
