"""Seeded programs: texts of several files in which a mark at the end of a line names its defect.

A file begins with `=== PATH`. `«89|564»` at the end of a line is a defect of CWE-89 or CWE-564; a line without
a mark is in order. Marks are removed before the files are looked at, and so is `¦`, which keeps made-up
credentials from looking real in this repository.
"""

import re
from pathlib import Path
from typing import NamedTuple

from agents.workspace.workspace import Workspace

_MARK = re.compile(r"\s*«([\d|]+)»\s*$")


class Seed(NamedTuple):
    """A defect: where it is, and the weaknesses of which it may be called one."""

    file: str
    line: int
    cwes: frozenset[int]


def read_seeds(path: Path) -> tuple[Workspace, list[Seed]]:
    """The files of a seeded program, and its defects."""
    texts: dict[str, list[str]] = {}
    seeds: list[Seed] = []
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            name = line[4:].strip()
            texts[name] = []
            continue
        mark = _MARK.search(line)
        if mark is not None:
            line = line[: mark.start()]
            cwes = frozenset(int(one) for one in mark[1].split("|"))
            seeds.append(Seed(name, len(texts[name]) + 1, cwes))
        texts[name].append(line.replace("¦", ""))
    return Workspace.of_texts({one: "\n".join(lines) + "\n" for one, lines in texts.items()}), seeds
