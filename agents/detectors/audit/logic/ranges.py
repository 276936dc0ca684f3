"""Ranges that leave out an element, branches that an earlier one covers, and bounds that no value is between."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import COMPREHENSIONS, PythonModule, shape, terminates
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "ranges", entry=RuleEntry)

_LOWER = re.compile(
    r"^(.*_)?(low|lower|lo|min|minimum|start|first|begin|floor|bottom|left|since|after)(_.*)?$",
    re.I,
)
_UPPER = re.compile(
    r"^(.*_)?(high|upper|hi|max|maximum|end|last|stop|ceiling|top|right|until|before)(_.*)?$", re.I
)


def check_ranges(module: PythonModule) -> Iterator[Finding]:
    """Findings about ranges and chains of comparisons."""
    for node in module.nodes:
        if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
            yield from _comprehension(module, node)
        elif isinstance(node, ast.For):
            yield from _loop(module, node)
        elif isinstance(node, ast.If):
            yield from _chain(module, node)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            yield from _outside_both(module, node)


def _range(node: ast.expr) -> list[ast.expr] | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "range"
        and not node.keywords
    ):
        return node.args
    return None


def _comprehension(
    module: PythonModule, node: ast.ListComp | ast.SetComp | ast.GeneratorExp
) -> Iterator[Finding]:
    ranges = [(one, _range(one.iter)) for one in node.generators]
    for generator, given in ranges:
        if given is not None:
            yield from _chunks(module, generator.target, given, node.elt)
    counted = [given for _, given in ranges if given is not None and len(given) == 2]
    yield from _inclusive_beside_exclusive(module, node, counted)


def _loop(module: PythonModule, node: ast.For) -> Iterator[Finding]:
    given = _range(node.iter)
    if given is None:
        return
    body = ast.Module(body=node.body, type_ignores=[])
    yield from _chunks(module, node.target, given, body)
    inner = [_range(one.iter) for one in node.body if isinstance(one, ast.For)]
    counted = [one for one in (given, *inner) if one is not None and len(one) == 2]
    yield from _inclusive_beside_exclusive(module, node, counted)


def _chunks(
    module: PythonModule, target: ast.expr, given: list[ast.expr], body: ast.AST
) -> Iterator[Finding]:
    """`rows[i : i + size] for i in range(0, len(rows) - size, size)`: the last part is never taken."""
    if len(given) != 3 or not isinstance(target, ast.Name):
        return
    stop, step = given[1], shape(given[2])
    if (
        not isinstance(stop, ast.BinOp)
        or not isinstance(stop.op, ast.Sub)
        or shape(stop.right) != step
    ):
        return
    if not re.match(r"len\(", shape(stop.left)):
        return
    for inner in ast.walk(body):
        if (
            isinstance(inner, ast.Slice)
            and inner.lower is not None
            and shape(inner.lower) == target.id
        ):
            if inner.upper is not None and shape(inner.upper) in (
                f"{target.id} + {step}",
                f"{step} + {target.id}",
            ):
                text = f"The last {step} elements are left out: range to {shape(stop.left)}."
                yield RULES["off-by-one"].at(module.file, stop.lineno, text, confidence=0.75)
                return


def _inclusive_beside_exclusive(
    module: PythonModule, node: ast.expr | ast.stmt, counted: list[list[ast.expr]]
) -> Iterator[Finding]:
    """`range(1, rows)` beside `range(1, columns + 1)`: one counts to its end, the other stops before it."""
    from_one = [
        given for given in counted if isinstance(given[0], ast.Constant) and given[0].value == 1
    ]
    inclusive = [given for given in from_one if _plus_one(given[1])]
    exclusive = [given for given in from_one if isinstance(given[1], ast.Name | ast.Attribute)]
    if inclusive and exclusive:
        name, other = shape(exclusive[0][1]), shape(inclusive[0][1])
        text = f"range(1, {name}) stops before {name}, while range(1, {other}) beside it does not: is + 1 missing?"
        yield RULES["off-by-one"].at(module.file, node.lineno, text, confidence=0.6)


def _plus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and shape(node.right) == "1"


def _bound(test: ast.expr) -> tuple[str, bool, float, bool] | None:
    """Name, whether above, number, and whether it is included, of `name > number`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    flipped = isinstance(left, ast.Constant)
    if flipped:
        left, right = right, left
    if (
        not isinstance(right, ast.Constant)
        or not isinstance(right.value, int | float)
        or isinstance(right.value, bool)
    ):
        return None
    if not isinstance(left, ast.Name | ast.Attribute | ast.Subscript):
        return None
    if isinstance(operator, ast.Gt | ast.GtE):
        above = not flipped
    elif isinstance(operator, ast.Lt | ast.LtE):
        above = flipped
    else:
        return None
    return shape(left), above, float(right.value), isinstance(operator, ast.GtE | ast.LtE)


def _chain(module: PythonModule, node: ast.If) -> Iterator[Finding]:
    """`if x > 10: … elif x > 20:`: what the second tests for has passed the first."""
    parent = module.parent.get(node)
    if isinstance(parent, ast.If) and parent.orelse == [node]:
        return
    seen: list[tuple[str, bool, float, bool]] = []
    for branch in _branches(module, node):
        bound = _bound(branch.test)
        if bound is None:
            continue
        name, above, number, included = bound
        for other, other_above, limit, other_included in seen:
            if name != other or above != other_above:
                continue
            wider = number > limit if above else number < limit
            same = number == limit and (other_included or not included)
            if wider or same:
                text = f"An earlier branch has taken every such {name:.40}: test the narrower range first."
                yield RULES["covered-branch"].at(
                    module.file, branch.test.lineno, text, end_line=branch.body[-1].end_lineno
                )
                return
        seen.append(bound)


def _branches(module: PythonModule, node: ast.If) -> Iterator[ast.If]:
    """The branches of a chain of `elif`, and of `if`s that follow each other and each leave the block."""
    current: ast.If | None = node
    while current is not None:
        yield current
        following = current.orelse[0] if len(current.orelse) == 1 else None
        current = following if isinstance(following, ast.If) else None
    parent = module.parent.get(node)
    block = next(
        (
            one
            for name in ("body", "orelse")
            if isinstance(one := getattr(parent, name, None), list) and node in one
        ),
        [],
    )
    at = block.index(node) if node in block else 0
    if not terminates(node.body) or (at and isinstance(block[at - 1], ast.If)):
        return
    for statement in block[at + 1 :]:
        if not isinstance(statement, ast.If):
            return
        yield statement
        if not terminates(statement.body):
            return


def _outside_both(module: PythonModule, node: ast.BoolOp) -> Iterator[Finding]:
    """`value < low and value > high`: by their names, no value is below the one and above the other."""
    below: set[str] = set()
    above: set[str] = set()
    for value in node.values:
        if not isinstance(value, ast.Compare) or len(value.ops) != 1:
            continue
        left, right = value.left, value.comparators[0]
        if not isinstance(right, ast.Name | ast.Attribute) or not isinstance(
            left, ast.Name | ast.Attribute
        ):
            continue
        name = shape(right).rsplit(".", 1)[-1]
        if isinstance(value.ops[0], ast.Lt) and _LOWER.match(name):
            below.add(shape(left))
        elif isinstance(value.ops[0], ast.Gt) and _UPPER.match(name):
            above.add(shape(left))
    if below & above:
        text = "No value is below the lower and above the upper bound: use `or`."
        yield RULES["impossible-range"].at(module.file, node.lineno, text, confidence=0.8)
