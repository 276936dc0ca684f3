"""`mutants`: copies of code with one fault each, to see whether a test notices them.

Faults are other operators, constants by one, negated conditions, bounds of ranges, results that are lost, and
functions taken for their opposites.
"""

import ast
import copy
from collections.abc import Callable, Iterator

MAX_MUTANTS = 8
_SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add, ast.Pow), ast.Div: (ast.FloorDiv, ast.Mult),
    ast.FloorDiv: (ast.Div,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,),
}  # fmt: skip
_TWINS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor",
    "upper": "lower", "lower": "upper", "startswith": "endswith", "endswith": "startswith",
    "append": "extend", "extend": "append", "find": "rfind", "rfind": "find",
}  # fmt: skip
Change = Callable[[], None]


def mutants(source: str, first: int, last: int) -> list[str]:
    """Texts of a module with one fault each, at most `MAX_MUTANTS`, in the lines `first` to `last`."""
    tree = ast.parse(source)
    places = [
        (at, number)
        for at, node in enumerate(ast.walk(tree))
        if first <= getattr(node, "lineno", 0) <= last
        for number, _ in enumerate(_changes(node))
    ]
    step = max(1, -(-len(places) // MAX_MUTANTS))
    found: dict[str, None] = {}
    for at, number in places[::step]:
        changed = copy.deepcopy(tree)
        node = next(node for place, node in enumerate(ast.walk(changed)) if place == at)
        list(_changes(node))[number]()
        found[ast.unparse(ast.fix_missing_locations(changed)) + "\n"] = None
    return list(found)


def _changes(node: ast.AST) -> Iterator[Change]:
    """The changes that can be made in a node, each of which changes it when it is called."""
    match node:
        case ast.Compare(ops=[op, *rest]):
            for other in _SWAPPED.get(type(op), ()):
                yield _set(node, "ops", [other(), *rest])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
            for other in _SWAPPED.get(type(op), ()):
                yield _set(node, "op", other())
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield _set(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value=bool() as value):
            yield _set(node, "value", not value)
        case ast.Constant(value=int() as value):
            yield _set(node, "value", value + 1)
            yield _set(node, "value", value - 1)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _set(node, "value", ast.Constant(None))
        case ast.Call(func=ast.Name(id="range"), args=[stop]):
            yield _set(node, "args", [ast.Constant(1), stop])
            yield _set(node, "args", [ast.BinOp(stop, ast.Add(), ast.Constant(1))])
            yield _set(node, "args", [ast.BinOp(stop, ast.Sub(), ast.Constant(1))])
        case ast.Call(func=ast.Name(id="range"), args=[start, stop, *rest]):
            yield _set(node, "args", [start, ast.BinOp(stop, ast.Add(), ast.Constant(1)), *rest])
            yield _set(node, "args", [start, ast.BinOp(stop, ast.Sub(), ast.Constant(1)), *rest])
        case ast.Name(id=name, ctx=ast.Load()) if name in _TWINS:
            yield _set(node, "id", _TWINS[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _TWINS:
            yield _set(node, "attr", _TWINS[name])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield (
                _set(node, "op", ast.UAdd())
                if isinstance(operand, ast.Constant)
                else _drop_not(node)
            )


def _drop_not(node: ast.UnaryOp) -> Change:
    """`not x` as `not not x`, which is as true as `x`."""
    return _set(node, "operand", ast.UnaryOp(ast.Not(), node.operand))


def _set(node: ast.AST, name: str, value: object) -> Change:
    return lambda: setattr(node, name, value)
