"""Reading and merging log files."""

import gzip
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

STAMP = re.compile(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)")


def open_text(path: Path):
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def stamp(line: str) -> datetime:
    match = STAMP.match(line)
    return datetime.fromisoformat(f"{match.group(1)}T{match.group(2)}")


def stamp_or_none(line: str) -> datetime | None:
    match = STAMP.match(line)
    return datetime.fromisoformat(f"{match.group(1)}T{match.group(2)}") if match else None


def lines(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        with open_text(path) as file:
            yield from file


def level(line: str) -> str:
    return line.split(" ")[2]


def last_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[-1]


def first_line(path: Path) -> str:
    found = path.read_text(encoding="utf-8").splitlines()
    return found[0] if found else ""


def load_offsets(path: Path, offsets: dict[str, int] = {}) -> dict[str, int]:
    offsets.update(json.loads(path.read_text()))
    return offsets


def count_level(paths: list[Path], wanted: str) -> int:
    return sum(1 for line in lines(paths) if f" {wanted} " in line)
