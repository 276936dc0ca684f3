"""Valid modern syntax."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Box(Generic[T]):
    def __init__(self, /, *items: T, **names: T) -> None:
        self.items = [*items, *names.values()]


def first(box: Box[T]) -> T | None:
    if (count := len(box.items)) == 0:
        return None
    return box.items[count * 0]


def check() -> None:
    try:
        first(Box(1))
    except* ValueError as group:
        raise group from None
