"""Comparisons and conditions: bounds, directions, `and` and `or`, a `not` too many or too few."""

import ast
from collections.abc import Iterator

from agents.repair.failing_tests.operators.place import Change, Place

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_OTHERS: dict[str, tuple[tuple[str, int], ...]] = {
    "<": (("<=", 1), (">", 2), (">=", 2)),
    "<=": (("<", 1), (">=", 2), (">", 2)),
    ">": ((">=", 1), ("<", 2), ("<=", 2)),
    ">=": ((">", 1), ("<=", 2), ("<", 2)),
    "==": (("!=", 2),),
    "!=": (("==", 2),),
    "is": (("is not", 1), ("==", 1)),
    "is not": (("is", 1), ("!=", 1)),
    "in": (("not in", 2),),
    "not in": (("in", 2),),
}


def comparison_signs(place: Place) -> Iterator[Change]:
    """`<` for `<=`, the other direction, the opposite."""
    for node in place.nodes:
        if not isinstance(node, ast.Compare):
            continue
        left = node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            old = _SIGNS[type(sign)]
            for new, tier in _OTHERS[old]:
                edit = place.between(left, right, old, new)
                if edit is not None:
                    yield Change((edit,), f"{new!r} for {old!r}", tier, node.lineno)
            left = right


def conditions(place: Place) -> Iterator[Change]:
    """`and` for `or`, and the opposite of a condition."""
    for node in place.nodes:
        if isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            pairs = zip(node.values, node.values[1:], strict=False)
            edits = [place.between(left, right, old, new) for left, right in pairs]
            if all(one is not None for one in edits):
                known = tuple(one for one in edits if one is not None)
                yield Change(known, f"{new!r} for {old!r}", 1, node.lineno)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield place.replace(node, place.source(node.operand), "without 'not'", 2)
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
            node.test, ast.Compare | ast.UnaryOp
        ):
            text = place.source(node.test)
            whole = (
                text if isinstance(node.test, ast.Name | ast.Call | ast.Attribute) else f"({text})"
            )
            yield place.replace(node.test, f"not {whole}", "with 'not'", 2)
