"""Lists in pages: OpenAI's parameters `limit`, `order`, `after` and `before`."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which part of a list is wanted.

    Attributes:
        limit: most items.
        order: by time of creation.
        after: id of the item before the page, in this order; None begins at the beginning.
        before: id of the item behind the page. Alone, the page is the one that ends there.
    """

    limit: int
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A part of a list, and whether there is more in the direction that was read."""

    items: tuple[Item, ...]
    has_more: bool
