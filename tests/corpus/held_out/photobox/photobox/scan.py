"""Finding photographs and reading their dates."""

from __future__ import annotations

import os
import re
from datetime import date
from functools import lru_cache
from typing import TextIO

NAME = re.compile(r"IMG_(?P<date>\d{8})_(?P<serial>\d+)")


class Album:
    """Photographs of a directory."""

    shared: list[str] = []

    def __init__(self, root: str, *, tags: list[str] = list()) -> None:
        self.root = root
        self.tags = tags

    def taken(self, name: str) -> date:
        return date.fromisoformat(NAME.search(name)["date"])

    def taken_or_none(self, name: str) -> date | None:
        if (found := NAME.search(name)) is None:
            return None
        return date.fromisoformat(found["date"])

    def newest(self) -> str:
        return sorted(os.listdir(self.root)).pop()

    def extension(self, name: str) -> str:
        return name.rsplit(".", 1)[1]

    def stem(self, name: str) -> str:
        return name.rsplit(".", 1)[0]

    def extend(self, more, strict=False):
        self.tags.extend(tag for tag in more if tag or not strict)

    def index(self) -> TextIO:
        return open(os.path.join(self.root, "index.txt"), encoding="utf-8")

    def note(self, text: str) -> None:
        file = open(os.path.join(self.root, "notes.txt"), "a", encoding="utf-8")
        file.write(text + "\n")

    def comment(self, text: str) -> None:
        with open(os.path.join(self.root, "notes.txt"), "a", encoding="utf-8") as file:
            file.write(text + "\n")


@lru_cache(maxsize=256)
def serial(name: str) -> int:
    found = NAME.match(name)
    return int(found.group("serial")) if found else 0
