"""Finding the cheapest way to send something."""

from postage.items import KINDS, Item, Kind


def fits(item: Item, kind: Kind) -> bool:
    """Whether an item may be sent as a kind: neither too large, in any position, nor too heavy."""
    small = all(side <= limit for side, limit in zip(item.sides, kind.sides))
    return small and item.grams <= kind.grams


def cheapest(item: Item) -> Kind | None:
    possible = [kind for kind in KINDS if fits(item, kind)]
    return min(possible, key=lambda kind: kind.cents, default=None)


def postage(items: list[Item]) -> int:
    """Cents for several items, each sent alone."""
    total = 0
    for item in items:
        kind = cheapest(item)
        if kind is None:
            raise ValueError("too large or too heavy")
        total += kind.cents
    return total


def counts(items: list[Item]) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in items:
        kind = cheapest(item)
        name = "none" if kind is None else kind.name
        found[name] = found.get(name, 0) + 1
    return found
