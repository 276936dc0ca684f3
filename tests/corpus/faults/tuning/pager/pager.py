"""Splitting long lists into pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    items: Sequence[T]
    number: int
    last: int

    @property
    def has_next(self) -> bool:
        return self.number < self.last

    @property
    def has_previous(self) -> bool:
        return self.number > 1


def num_pages(total: int, size: int) -> int:
    """How many pages hold `total` items; an empty list has one empty page."""
    if size < 1:
        raise ValueError("a page holds one item at least")
    return max(1, (total + size - 1) // size)


def page_of(items: Sequence[T], number: int, size: int = 10) -> Page[T]:
    """The page with a number, counted from 1. Numbers outside are moved to the nearest page."""
    last = num_pages(len(items), size)
    number = min(max(number, 1), last)
    start = (number - 1) * size
    return Page(items[start : start + size], number, last)
