"""Numbers and arithmetic: one too many, units, signs, the order of operations, rounding."""

import ast
from collections.abc import Iterator

from agents.repair.failing_tests.operators.place import Change, Place

_UNITS = (60, 3600, 86400, 24, 7, 100, 1000, 1024, 1_000_000)
_SMALL = 12
"""Larger numbers are rarely off by one, and many of their neighbours pass small tests."""
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
_OTHERS: dict[str, tuple[tuple[str, int], ...]] = {
    "+": (("-", 2), ("*", 2)),
    "-": (("+", 2),),
    "*": (("/", 2), ("+", 2)),
    "/": (("//", 1), ("*", 2)),
    "//": (("/", 1), ("%", 2)),
    "%": (("//", 2),),
    "**": (("*", 2),),
}


def _is_number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


def whole_numbers(place: Place) -> Iterator[Change]:
    """One more and one less; another unit's factor."""
    for node in place.nodes:
        if not isinstance(node, ast.Constant) or not _is_number(node):
            continue
        parent = place.module.parent.get(node)
        negative = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
        value = node.value
        if isinstance(value, int) and value <= _SMALL:
            for new in (value - 1, value + 1):
                if new >= 0 or not negative:
                    text = str(new) if new >= 0 else f"({new})"
                    yield place.replace(node, text, f"{new} for {value}", 1 if value <= 3 else 2)
        if value in _UNITS:
            for unit in _UNITS:
                if unit != value:
                    yield place.replace(node, str(unit), f"the unit {unit} for {value}", 2)


def bounds(place: Place) -> Iterator[Change]:
    """One more or less at the ends of slices and ranges, and in indexes; the last element for the first."""
    for node in place.nodes:
        ends: list[ast.expr] = []
        if isinstance(node, ast.Slice):
            ends = [one for one in (node.lower, node.upper) if one is not None]
        elif isinstance(node, ast.Call) and _called(node) in ("range", "enumerate"):
            ends = list(node.args)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.BinOp | ast.Name):
            ends = [node.slice]
        for end in ends:
            if _is_number(end):
                continue
            text = place.source(end)
            text = text if isinstance(end, ast.Name | ast.Call | ast.Attribute) else f"({text})"
            yield place.replace(end, f"{text} + 1", "one more", 1)
            yield place.replace(end, f"{text} - 1", "one less", 1)
        if isinstance(node, ast.Subscript) and place.source(node.slice) in ("0", "-1"):
            new = "-1" if place.source(node.slice) == "0" else "0"
            yield place.replace(node.slice, new, f"index {new}", 1)


def arithmetic(place: Place) -> Iterator[Change]:
    """Another sign, swapped operands, no minus, a missing or needless minus."""
    for node in place.nodes:
        if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            old = _SIGNS[type(node.op)]
            for new, tier in _OTHERS[old]:
                edit = place.between(node.left, node.right, old, new)
                if edit is not None:
                    yield Change((edit,), f"{new!r} for {old!r}", tier, node.lineno)
            if old in ("-", "/", "//", "%") and _simple(node.left) and _simple(node.right):
                yield place.swap(node.left, node.right, f"the sides of {old!r} swapped", 1)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield place.replace(node, place.source(node.operand), "without the minus", 1)
        if isinstance(node, ast.AugAssign) and type(node.op) in (ast.Add, ast.Sub):
            old, new = ("+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+=")
            edit = place.between(node.target, node.value, old, new)
            if edit is not None:
                yield Change((edit,), f"{new!r} for {old!r}", 1, node.lineno)
            edit = place.between(node.target, node.value, old, "=")
            if edit is not None:
                yield Change((edit,), f"'=' for {old!r}", 2, node.lineno)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            edit = place.between(node.targets[0], node.value, "=", "+=")
            if edit is not None and isinstance(
                node.targets[0], ast.Name | ast.Attribute | ast.Subscript
            ):
                yield Change((edit,), "'+=' for '='", 2, node.lineno)


def _simple(node: ast.AST) -> bool:
    """Whether a text keeps its meaning on either side of an operator."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)


def grouping(place: Place) -> Iterator[Change]:
    """Another order of operations: parentheses around neighbours, or taken away."""
    for node in place.nodes:
        if not isinstance(node, ast.BinOp) or isinstance(place.module.parent.get(node), ast.BinOp):
            continue
        terms, signs = _flat(place, node)
        if not 3 <= len(terms) <= 5 or (len(set(signs)) < 2 and set(signs) <= {"+", "*"}):
            continue
        plain = _joined(terms, signs)
        seen = {ast.dump(node)}
        for first in range(len(terms) - 1):
            for last in range(first + 1, len(terms)):
                if (first, last) != (0, len(terms) - 1):
                    yield from _new(place, node, [_grouped(terms, signs, (first, last))], seen)
                for third in range(last + 1, len(terms) - 1):
                    pair = _grouped(terms, signs, (first, last), (third, len(terms) - 1))
                    yield from _new(place, node, [pair], seen)
        yield from _new(place, node, [plain], seen)


def _new(place: Place, node: ast.BinOp, texts: list[str], seen: set[str]) -> Iterator[Change]:
    for text in texts:
        try:
            tree = ast.dump(ast.parse(text, mode="eval").body)
        except SyntaxError:
            continue
        if tree not in seen:
            seen.add(tree)
            yield place.replace(node, text, f"the order of operations: {text}"[:120], 2)


def _flat(place: Place, node: ast.expr) -> tuple[list[str], list[str]]:
    """The terms of a chain of operations from left to right, with the signs between them."""
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        terms, signs = _flat(place, node.left)
        more, others = _flat(place, node.right)
        return [*terms, *more], [*signs, _SIGNS[type(node.op)], *others]
    return [place.source(node)], []


def _joined(terms: list[str], signs: list[str]) -> str:
    parts = [terms[0]]
    for sign, term in zip(signs, terms[1:], strict=True):
        parts += [sign, term]
    return " ".join(parts)


def _grouped(terms: list[str], signs: list[str], *groups: tuple[int, int]) -> str:
    marked = list(terms)
    for first, last in groups:
        marked[first] = "(" + marked[first]
        marked[last] = marked[last] + ")"
    return _joined(marked, signs)


def rounding(place: Place) -> Iterator[Change]:
    """`round` for `int`, and the reverse; a quotient that is rounded up."""
    for node in place.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            parent = place.module.parent.get(node)
            more = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)
            if _simple(node.left):
                new = f"-(-{place.source(node.left)} // {place.source(node.right)})"
                for target in [node, parent] if more and parent is not None else [node]:
                    yield place.replace(target, new, "rounded up", 2)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            other = {"int": "round", "round": "int"}.get(node.func.id)
            if other is not None:
                yield place.replace(node.func, other, f"{other!r} for {node.func.id!r}", 2)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""
