"""Exceptions: the one that is caught or raised is another, and handlers in an order that hides one."""

import ast
import builtins
from collections.abc import Iterator

from agents.repair.failing_tests.operators.place import Change, Place

_FAMILIES = (
    ("KeyError", "IndexError", "LookupError"), ("ValueError", "TypeError"), ("OSError", "FileNotFoundError"),
    ("AttributeError", "TypeError"), ("ZeroDivisionError", "ArithmeticError"),
    ("StopIteration", "IndexError"),
)  # fmt: skip


def caught(place: Place) -> Iterator[Change]:
    """The exception that the failing test saw, or one of the same family, is caught instead."""
    for node in place.nodes:
        if not isinstance(node, ast.ExceptHandler) or node.type is None:
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for kind in kinds:
            old = place.source(kind)
            for new in sorted(place.raised):
                if new != old and _is_narrow(new):
                    yield place.replace(kind, new, f"{new} is caught, not {old}", 1)
            for family in _FAMILIES:
                for new in family if old in family else ():
                    if new != old and new not in place.raised:
                        yield place.replace(kind, new, f"{new} is caught, not {old}", 2)


def raised(place: Place) -> Iterator[Change]:
    """The exception that the failing test wants is raised instead."""
    known = {*place.module.imports, *(one.name for one in place.module.of(ast.ClassDef))}
    for node in place.nodes:
        if not isinstance(node, ast.Raise) or node.exc is None:
            continue
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        old = place.source(kind)
        for new in sorted(place.expected):
            if new != old and (new in known or hasattr(builtins, new)):
                yield place.replace(kind, new, f"{new} is raised, not {old}", 1)


def handler_order(place: Place) -> Iterator[Change]:
    """Two handlers exchanged: the first one that fits is taken, so a broad one hides those behind it."""
    for node in place.nodes:
        if not isinstance(node, ast.Try):
            continue
        for one, other in zip(node.handlers, node.handlers[1:], strict=False):
            if one.type is not None and other.type is not None:
                broad = place.source(one.type) in ("Exception", "BaseException")
                what = f"{place.source(other.type)} is caught before {place.source(one.type)}"
                yield place.swap(one, other, what, 0 if broad else 1)


def _is_narrow(name: str) -> bool:
    """Whether catching it does not catch every mistake, a failed assertion included."""
    return name not in ("Exception", "BaseException", "AssertionError", "NameError", "SyntaxError")
