"""Counts of items on shelves."""

from stock.errors import OutOfStock, UnknownItem


class Store:
    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def receive(self, item: str, count: int) -> None:
        if count <= 0:
            raise ValueError("nothing received")
        self._counts[item] = self._counts.get(item, 0) + count

    def count(self, item: str) -> int:
        try:
            return self._counts[item]
        except KeyError:
            raise UnknownItem(item) from None

    def take(self, item: str, count: int) -> None:
        left = self.count(item)
        if count > left:
            raise OutOfStock(item, count, left)
        self._counts[item] = left - count

    def low(self, below: int) -> list[str]:
        return sorted(item for item, count in self._counts.items() if count < below)
