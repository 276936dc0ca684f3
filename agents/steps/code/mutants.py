"""`mutants`: small faults of a function, to see whether a test notices them."""

import ast
import copy
from collections.abc import Iterator

MAX_MUTANTS = 8
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str, first: int, last: int) -> list[str]:
    """Texts of a module with one fault each, in the lines `first` to `last`; at most `MAX_MUTANTS`."""
    tree = ast.parse(source)
    found: list[str] = []
    places = [
        at
        for at, node in enumerate(ast.walk(tree))
        if first <= getattr(node, "lineno", 0) <= last and _changes(node)
    ]
    step = max(1, len(places) // MAX_MUTANTS)
    for at in places[::step]:
        changed = copy.deepcopy(tree)
        node = next(node for number, node in enumerate(ast.walk(changed)) if number == at)
        next(iter(_changes(node)))()
        found.append(ast.unparse(ast.fix_missing_locations(changed)) + "\n")
    return found[:MAX_MUTANTS]


def _changes(node: ast.AST) -> list["_Change"]:
    return list(_possible(node))


class _Change:
    """A fault that can be made in a node."""

    def __init__(self, node: ast.AST, name: str, value: object) -> None:
        self._node, self._name, self._value = node, name, value

    def __call__(self) -> None:
        setattr(self._node, self._name, self._value)


def _possible(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[op, *rest]) if type(op) in _SWAPPED:
            yield _Change(node, "ops", [_SWAPPED[type(op)](), *rest])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in _SWAPPED:
            yield _Change(node, "op", _SWAPPED[type(op)]())
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield _Change(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value=bool() as value):
            yield _Change(node, "value", not value)
        case ast.Constant(value=int() as value):
            yield _Change(node, "value", value + 1)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _Change(node, "value", ast.Constant(None))
