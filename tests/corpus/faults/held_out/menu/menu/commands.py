"""Commands of a text menu."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    key: str
    title: str
    run: Callable[[], str]


class Document:
    """A document with a zoom and a list of marks."""

    def __init__(self) -> None:
        self.zoom = 100
        self.marks: list[int] = []

    def set_zoom(self, percent: int) -> str:
        self.zoom = percent
        return f"zoom {percent} %"

    def toggle_mark(self, page: int) -> str:
        if page in self.marks:
            self.marks.remove(page)
            return f"mark {page} removed"
        self.marks.append(page)
        return f"mark {page} set"
