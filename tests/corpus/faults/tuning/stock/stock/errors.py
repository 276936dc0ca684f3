"""What can go wrong in the store."""


class StockError(Exception):
    """Base of all."""


class UnknownItem(StockError):
    def __init__(self, item: str) -> None:
        super().__init__(f"no item {item}")
        self.item = item


class OutOfStock(StockError):
    def __init__(self, item: str, wanted: int, left: int) -> None:
        super().__init__(f"{wanted} of {item} wanted, {left} left")
        self.item = item
        self.left = left
