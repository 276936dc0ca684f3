"""Conditions that are always true, always false, or not what was meant (CWE-570, CWE-571, CWE-697)."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule, is_test_path, shape
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "conditions", entry=RuleEntry)


def check_conditions(module: PythonModule) -> Iterator[Finding]:
    """Findings about the comparisons, boolean operations and tests of a module."""
    test_file = is_test_path(module.file.path)
    for node in module.nodes:
        if isinstance(node, ast.Compare):
            yield from _comparison(module, node, test_file)
            yield from _membership(module, node)
        elif isinstance(node, ast.BoolOp):
            yield from _boolean(module, node)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield from _test(module, node)
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
            yield RULES["assert-tuple"].at(module.file, node.lineno)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            yield from _bitwise(module, node)


def _comparison(module: PythonModule, node: ast.Compare, test_file: bool) -> Iterator[Finding]:
    file = module.file
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
        if isinstance(left, ast.Name | ast.Attribute | ast.Subscript) and not test_file:
            if shape(left) == shape(right) and not _is_nan_test(module, node):
                yield RULES["self-comparison"].at(
                    file, node.lineno, f"{shape(left):.80} is compared with itself."
                )
        if isinstance(operator, ast.Is | ast.IsNot) and _is_literal(left, right):
            yield RULES["is-literal"].at(file, node.lineno)
        if isinstance(operator, ast.Eq | ast.NotEq) and not test_file:
            if _is_inexact(left, right) or _is_inexact(right, left):
                yield RULES["float-equality"].at(
                    file,
                    node.lineno,
                    confidence=0.8,
                )
    bounds = _bounds_of(node)
    if bounds and _empty_range(bounds):
        yield RULES["impossible-range"].at(file, node.lineno)


def _is_nan_test(module: PythonModule, node: ast.Compare) -> bool:
    """`x != x` is the idiom for NaN."""
    function = module.function_of(node)
    is_dunder = function is not None and function.name.startswith("__")
    return isinstance(node.ops[0], ast.NotEq | ast.Eq) and (
        is_dunder or "nan" in module.file.quote(node.lineno).lower() or _in_nan_function(function)
    )


def _in_nan_function(function: ast.AST | None) -> bool:
    return "nan" in getattr(function, "name", "").lower()


def _is_literal(*operands: ast.expr) -> bool:
    for operand in operands:
        if isinstance(operand, ast.Constant):
            if operand.value is None or isinstance(operand.value, bool) or operand.value is ...:
                continue
            return True
        if isinstance(operand, ast.List | ast.Dict | ast.Set | ast.JoinedStr):
            return True
        if isinstance(operand, ast.Tuple):
            return True
    return False


def _is_inexact(value: ast.expr, other: ast.expr) -> bool:
    """A float literal with a fraction that binary cannot represent, beside something computed."""
    if not isinstance(value, ast.Constant) or not isinstance(value.value, float):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            return isinstance(other, ast.BinOp) and isinstance(other.op, ast.Div | ast.Mult)
        return False
    computed = any(
        isinstance(inner, ast.BinOp)
        and isinstance(inner.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
        for inner in ast.walk(other)
    ) or (
        isinstance(other, ast.Call) and isinstance(other.func, ast.Name) and other.func.id == "sum"
    )
    exact = value.value == int(value.value) if abs(value.value) < 2**53 else True
    fraction = (value.value * 1024) % 1 != 0
    plain = isinstance(other, ast.Name | ast.Attribute)
    return (computed and not exact) or (plain and fraction)


def _boolean(module: PythonModule, node: ast.BoolOp) -> Iterator[Finding]:
    file = module.file
    line = node.lineno
    shapes = [shape(value) for value in node.values]
    for index, text in enumerate(shapes):
        if text in shapes[:index] and not any(
            isinstance(inner, ast.Call | ast.Await) for inner in ast.walk(node.values[index])
        ):
            yield RULES["repeated-operand"].at(
                file, line, f"{text:.80} occurs twice: one of them was meant to be something else."
            )
            break
    if isinstance(node.op, ast.Or):
        yield from _or(module, node)
    else:
        bounds = [bound for value in node.values for bound in _bounds_of(value)]
        if _empty_range(bounds):
            yield RULES["impossible-range"].at(
                file,
                line,
                "No value satisfies both conditions: one of the comparisons is inverted.",
            )
        equal = [pair for value in node.values if (pair := _equality(value, ast.Eq))]
        for index, (name, constant) in enumerate(equal):
            if any(name == one and constant != other for one, other in equal[:index]):
                yield RULES["impossible-range"].at(
                    file, line, f"{name:.60} cannot equal two different values: use `or`."
                )
                break


def _or(module: PythonModule, node: ast.BoolOp) -> Iterator[Finding]:
    unequal = [pair for value in node.values if (pair := _equality(value, ast.NotEq))]
    for index, (name, constant) in enumerate(unequal):
        if any(name == one and constant != other for one, other in unequal[:index]):
            yield RULES["wrong-boolean-operator"].at(
                module.file,
                node.lineno,
                f"{name:.60} always differs from one of the two values, so this is always true: use "
                "`and`.",
            )
            break
    single = [found[0] for value in node.values if len(found := _bounds_of(value)) == 1]
    bounds = [] if any(len(_bounds_of(value)) > 1 for value in node.values) else single
    if len(bounds) == 2 and len(node.values) == 2 and _covers_everything(bounds):
        yield RULES["wrong-boolean-operator"].at(module.file, node.lineno)
    compared = isinstance(node.values[0], ast.Compare) and isinstance(
        node.values[0].ops[0], ast.Eq | ast.NotEq
    )
    last = node.values[-1]
    if compared and isinstance(last, ast.Constant) and isinstance(last.value, str | int):
        if last.value and not isinstance(last.value, bool) and _is_condition(module, node):
            yield RULES["constant-operand"].at(
                module.file,
                node.lineno,
                f"The operand {last.value!r:.40} is always true: compare with it, or use `in`.",
            )
    if _has_true(node) and _is_condition(module, node):
        yield RULES["always-true"].at(
            module.file, node.lineno, "`or True` makes the whole always true: nothing else counts."
        )


def _has_true(node: ast.BoolOp) -> bool:
    """Whether an operand of `or` is the literal True; `list.append(x) or True` is an idiom, and none."""
    others = [
        one for one in node.values if not (isinstance(one, ast.Constant) and one.value is True)
    ]
    if len(others) == len(node.values):
        return False
    return not all(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr
        in ("append", "add", "update", "write", "setdefault", "extend", "clear", "pop")
        for one in others
    )


def _membership(module: PythonModule, node: ast.Compare) -> Iterator[Finding]:
    """`role in ("admin")`: the parentheses make no tuple, so parts of the text are members, too."""
    right = node.comparators[0]
    if not isinstance(node.ops[0], ast.In | ast.NotIn) or len(node.ops) != 1:
        return
    if not isinstance(right, ast.Constant) or not isinstance(right.value, str):
        return
    if not re.fullmatch(r"\w{2,}", right.value) or isinstance(node.left, ast.Constant):
        return
    line = module.file.lines[right.lineno - 1].encode()
    before, after = line[: right.col_offset].rstrip(), line[right.end_col_offset :].lstrip()
    enclosed = before.endswith((b"in (", b"in("))
    name = node.left.attr if isinstance(node.left, ast.Attribute) else ""
    name = node.left.id if isinstance(node.left, ast.Name) else name
    if enclosed and after.startswith(b")"):
        text = f"({right.value!r}) is a text and no tuple, so each part of it is a member: add a comma."
    elif re.search(r"(^|_)(role|status|state|permission|username)$", name):
        text = f"Each part of {right.value!r} is a member of it, the empty text too: use ==."
    else:
        return
    yield RULES["member-of-text"].at(module.file, node.lineno, text)


def _is_condition(module: PythonModule, node: ast.AST) -> bool:
    parent = module.parent.get(node)
    return isinstance(parent, ast.If | ast.While | ast.IfExp | ast.BoolOp | ast.Return | ast.Assert)


def _equality(node: ast.expr, kind: type[ast.cmpop]) -> tuple[str, str] | None:
    """Name and constant of `name == constant`."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], kind):
        return None
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.Constant):
        left, right = right, left
    if not isinstance(right, ast.Constant) or isinstance(left, ast.Constant | ast.Call):
        return None
    return shape(left), repr(right.value)


_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip
Bound = tuple[str, type[ast.cmpop], float]


def _bounds_of(node: ast.expr) -> list[Bound]:
    """`(name, operator, number)` for each comparison of an expression with a number."""
    if not isinstance(node, ast.Compare):
        return []
    found: list[Bound] = []
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
        kind = type(operator)
        if kind not in _FLIPPED:
            continue
        low, high = _number(left), _number(right)
        if high is not None and low is None:
            found.append((shape(left), kind, high))
        elif low is not None and high is None:
            found.append((shape(right), _FLIPPED[kind], low))
    return found


def _number(node: ast.expr) -> float | None:
    sign = 1.0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1.0
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if not isinstance(node.value, bool) and abs(node.value) < 1e300:
            return sign * float(node.value)
    return None


def _empty_range(bounds: list[Bound]) -> bool:
    for name, above, low in bounds:
        for other, below, high in bounds:
            if name != other or above not in (ast.Gt, ast.GtE) or below not in (ast.Lt, ast.LtE):
                continue
            if low > high or (low == high and (above is ast.Gt or below is ast.Lt)):
                return True
    return False


def _covers_everything(bounds: list[Bound]) -> bool:
    (name, one, first), (other, two, second) = bounds
    if name != other:
        return False
    if one in (ast.Lt, ast.LtE):
        (one, first), (two, second) = (two, second), (one, first)
    return (
        one in (ast.Gt, ast.GtE)
        and two in (ast.Lt, ast.LtE)
        and (first < second or (first == second and (one is ast.GtE or two is ast.LtE)))
    )


def _test(module: PythonModule, node: ast.If | ast.While | ast.IfExp) -> Iterator[Finding]:
    test = node.test
    if isinstance(node, ast.While) and isinstance(test, ast.Constant):
        return  # `while True` is an idiom
    if isinstance(test, ast.Constant) and not isinstance(test.value, str | bytes):
        if isinstance(node, ast.If):
            yield RULES["constant-test"].at(
                module.file, node.lineno, f"This condition is always {bool(test.value)}."
            )
    elif isinstance(test, ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Dict):
        empty = not getattr(test, "value", None) and not getattr(test, "elts", None)
        outcome = "false" if empty and not getattr(test, "values", None) else "true"
        yield RULES["constant-test"].at(
            module.file, node.lineno, f"This literal is always {outcome}."
        )
    elif isinstance(test, ast.Lambda):
        yield RULES["constant-test"].at(module.file, node.lineno)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or | ast.And):
        for value in test.values:
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                yield RULES["constant-test"].at(
                    module.file,
                    node.lineno,
                    f"The operand {value.value} decides or is superfluous.",
                )
                break
    elif isinstance(test, ast.Name) and test.id in _function_names(module):
        yield RULES["function-as-condition"].at(
            module.file, node.lineno, f"{test.id} is a function and always true: call it."
        )


def _function_names(module: PythonModule) -> set[str]:
    """Functions of the module that are bound once, and to nothing else."""
    names = {
        node.name
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    if not names:
        return names
    for node in module.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.discard(node.id)
        elif isinstance(node, ast.arg):
            names.discard(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.difference_update(alias.asname or alias.name for alias in node.names)
    return names


def _bitwise(module: PythonModule, node: ast.BinOp) -> Iterator[Finding]:
    """`a > 1 & b < 2` parses as a chain around `1 & b`; `(a > 1) & flag()` evaluates both sides."""
    parent = module.parent.get(node)
    if isinstance(parent, ast.Compare) and len(parent.ops) >= 2 and len(parent.comparators) >= 2:
        if parent.comparators[0] is node and not isinstance(parent.ops[0], ast.In | ast.NotIn):
            yield RULES["bitwise-as-logical"].at(
                module.file,
                node.lineno,
            )
            return
    if isinstance(parent, ast.If | ast.While) and parent.test is node:
        both = (node.left, node.right)
        if all(isinstance(side, ast.Compare) or _is_not(side) for side in both) and not any(
            isinstance(inner, ast.Subscript) for side in both for inner in ast.walk(side)
        ):
            yield RULES["bitwise-as-logical"].at(
                module.file, node.lineno, "Conditions are joined bitwise: use `and` or `or`."
            )


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
