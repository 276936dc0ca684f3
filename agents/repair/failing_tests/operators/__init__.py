"""`small_changes`: the usual slips, undone: a bound, a sign, a key, a default, a stale cache.

They know nothing of what a program is for. One that passes the tests is judged like any other patch; the tier
says how usual the slip is: a rarer one is tried only if no more usual one passes.
"""

import ast
from collections.abc import Callable, Iterator

from agents.repair.failing_tests.operators import (
    comparisons,
    exceptions,
    names,
    numbers,
    statements,
    values,
)
from agents.repair.failing_tests.operators.place import Change, Place

Operator = Callable[[Place], Iterator[Change]]
OPERATORS: tuple[Operator, ...] = (
    comparisons.comparison_signs, comparisons.conditions, numbers.whole_numbers, numbers.bounds,
    numbers.arithmetic, numbers.grouping, numbers.rounding, names.keys, names.attributes, names.arguments,
    names.siblings, names.sorting, exceptions.caught, exceptions.raised, exceptions.handler_order,
    values.defaults, values.none_guards, values.closures, values.shadowed, values.resets,
    statements.returns, statements.caches, statements.transplants,
)  # fmt: skip


def small_changes(place: Place) -> list[Change]:
    """All small changes of a place that still parse and mean something else, the usual ones first."""
    found: dict[str, Change] = {}
    before = ast.dump(place.module.tree)
    for operator in OPERATORS:
        for change in operator(place):
            text = change.applied(place.text)
            known = found.get(text)
            if known is None or change.tier < known.tier:
                found[text] = change
    kept = []
    for text, change in found.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        if ast.dump(tree) != before:
            kept.append(change)
    return sorted(kept, key=lambda one: one.tier)


__all__ = ["Change", "Place", "small_changes"]
