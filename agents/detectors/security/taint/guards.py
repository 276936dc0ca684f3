"""Checks in conditions: what data is harmless for when a test has succeeded or failed."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.detectors.security.taint.data_flow import data_flow
from agents.detectors.security.taint.value import EVERY_SINK, Origin, SinkKind, Value

_PATH = frozenset([SinkKind.PATH])
_ADDRESS = frozenset([SinkKind.URL, SinkKind.REDIRECT])
_CHARACTER_TESTS = frozenset(
    ["isdigit", "isnumeric", "isalnum", "isidentifier", "isalpha", "isdecimal", "isascii"]
)
_TERMINATING = re.compile(r"(^|\.)(abort|exit|_exit|fail|error|die|bail)$")

Cleaned = dict[Origin, frozenset[SinkKind]]


@dataclass(slots=True)
class Guard:
    """What a test tells: origins and the kinds of sinks that they are harmless for.

    Attributes:
        if_true: when it succeeded.
        if_false: when it failed.
    """

    if_true: Cleaned = field(default_factory=dict)
    if_false: Cleaned = field(default_factory=dict)


def guard_of(
    test: ast.expr, evaluate: Callable[[ast.expr], Value], resolve: Callable[[ast.expr], str]
) -> Guard:
    """What a condition tells about the data in it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = guard_of(test.operand, evaluate, resolve)
        return Guard(inner.if_false, inner.if_true)
    if isinstance(test, ast.BoolOp):
        parts = [guard_of(value, evaluate, resolve) for value in test.values]
        if isinstance(test.op, ast.And):
            return Guard(if_true=_union([part.if_true for part in parts]))
        return Guard(if_false=_union([part.if_false for part in parts]))
    if isinstance(test, ast.NamedExpr):
        return guard_of(test.value, evaluate, resolve)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(test, evaluate, resolve)
    if isinstance(test, ast.Call):
        return Guard(if_true=_call(test, evaluate, resolve))
    return Guard()


def _comparison(
    test: ast.Compare, evaluate: Callable[[ast.expr], Value], resolve: Callable[[ast.expr], str]
) -> Guard:
    operator, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(operator, ast.In | ast.NotIn):
        if isinstance(left, ast.Constant) and isinstance(left.value, str):  # `".." in path`
            absent = _marked(
                evaluate(right), _PATH if left.value in ("..", "/", "\\", "../") else frozenset()
            )
            return Guard(if_false=absent) if isinstance(operator, ast.In) else Guard(if_true=absent)
        if evaluate(right).trust <= 2:
            member = _marked(evaluate(left), EVERY_SINK)
            return Guard(if_true=member) if isinstance(operator, ast.In) else Guard(if_false=member)
        return Guard()
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        sides = (evaluate(left), evaluate(right))
        if any(side.is_constant for side in sides):
            if any(isinstance(side, ast.Constant) and not side.value for side in (left, right)):
                return Guard()  # `is None` and `== ""` tell nothing about other values
            if isinstance(left, ast.Call) and resolve(left.func) in ("len", "type"):
                return Guard()
            equal = _union([_marked(side, EVERY_SINK) for side in sides])
        elif "commonp" in ast.dump(test) or "realpath" in ast.dump(test):
            equal = _union([_marked(side, _PATH) for side in sides])
        else:
            return Guard()
        if isinstance(operator, ast.Eq | ast.Is):
            return Guard(if_true=equal)
        return Guard(if_false=equal)
    return Guard()


def _call(
    test: ast.Call, evaluate: Callable[[ast.expr], Value], resolve: Callable[[ast.expr], str]
) -> Cleaned:
    name = resolve(test.func)
    method = name.rpartition(".")[2] or (
        test.func.attr if isinstance(test.func, ast.Attribute) else ""
    )
    receiver = evaluate(test.func.value) if isinstance(test.func, ast.Attribute) else None
    if method in ("fullmatch", "match"):
        subject = (
            test.args[1] if name in ("re.match", "re.fullmatch") and len(test.args) > 1 else None
        )
        pattern = test.args[0] if subject is not None else None
        if subject is None and test.args:
            subject = test.args[0]
        text = (
            evaluate(pattern).text if pattern is not None else (receiver.text if receiver else None)
        )
        anchored = text is None or text.endswith(("$", r"\Z", r"\z"))
        if subject is not None and (method == "fullmatch" or anchored):
            return _marked(evaluate(subject), EVERY_SINK)
        return {}
    if receiver is not None and method in _CHARACTER_TESTS:
        return _marked(receiver, EVERY_SINK)
    if receiver is not None and method == "is_relative_to":
        return _marked(receiver, _PATH)
    if receiver is not None and method == "startswith" and test.args:
        prefix = evaluate(test.args[0])
        if not prefix.is_constant or prefix.text is None:
            return _marked(receiver, _PATH)
        if re.match(r"https?://[^/]+/", prefix.text) or (
            prefix.text.startswith("/") and len(prefix.text) > 1
        ):
            return _marked(receiver, _ADDRESS | _PATH)
        return _marked(receiver, frozenset([SinkKind.REDIRECT])) if prefix.text == "/" else {}
    if name == "isinstance" and len(test.args) == 2:
        kind = resolve(test.args[1])
        if kind in ("int", "float", "bool"):
            return _marked(evaluate(test.args[0]), EVERY_SINK)
        return _marked(evaluate(test.args[0]), frozenset([SinkKind.NOSQL])) if kind == "str" else {}
    if data_flow().python.check_name.search(method):
        values = [evaluate(arg) for arg in test.args]
        return _union([_marked(value, EVERY_SINK) for value in values])
    return {}


def checked_by_call(
    call: ast.Call, evaluate: Callable[[ast.expr], Value], resolve: Callable[[ast.expr], str]
) -> Cleaned:
    """What a statement such as `validate_path(path)` or `path.relative_to(root)`, which raises, tells."""
    name = resolve(call.func)
    method = name.rpartition(".")[2] or (
        call.func.attr if isinstance(call.func, ast.Attribute) else ""
    )
    if method == "relative_to" and isinstance(call.func, ast.Attribute):
        return _marked(evaluate(call.func.value), _PATH)
    if data_flow().python.check_name.search(method) and not method.startswith("is_"):
        return _union([_marked(evaluate(arg), EVERY_SINK) for arg in call.args])
    return {}


def always_leaves(body: list[ast.stmt], resolve: Callable[[ast.expr], str]) -> bool:
    """Whether control never gets past the last statement of a block."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(last, ast.If):
        return always_leaves(last.body, resolve) and always_leaves(last.orelse, resolve)
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return bool(_TERMINATING.search(resolve(last.value.func)))
    return False


def _marked(value: Value, kinds: frozenset[SinkKind]) -> Cleaned:
    return dict.fromkeys(value.origins, kinds) if kinds else {}


def _union(parts: list[Cleaned]) -> Cleaned:
    found: Cleaned = {}
    for part in parts:
        for origin, kinds in part.items():
            found[origin] = found.get(origin, frozenset()) | kinds
    return found
