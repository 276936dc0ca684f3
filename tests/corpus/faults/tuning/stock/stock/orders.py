"""Orders of several items: all of it or nothing."""

from dataclasses import dataclass, field

from stock.errors import StockError
from stock.store import Store


@dataclass
class Order:
    lines: dict[str, int]
    problems: list[str] = field(default_factory=list)


def fulfil(order: Order, store: Store) -> bool:
    """Take everything out of the store; if something is missing nothing is taken, and the order says what."""
    taken: list[tuple[str, int]] = []
    for item, count in order.lines.items():
        try:
            store.take(item, count)
        except StockError as error:
            order.problems.append(str(error))
        else:
            taken.append((item, count))
    if order.problems:
        for item, count in taken:
            store.receive(item, count)
        return False
    return True
