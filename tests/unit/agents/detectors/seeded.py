"""Seeded programs: texts of several files in which a mark at the end of a line names its defect.

A file begins with `=== PATH`. `«89|564»` at the end of a line is a defect of CWE-89 or CWE-564; a line without
a mark is in order. Marks are removed before the files are looked at, and so is `¦`, which keeps made-up
credentials from looking real in this repository.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from agents.api.finding import Finding
from agents.detectors.detector import Detector, DetectorContext
from agents.workspace.workspace import Workspace

SEEDS = Path(__file__).parent / "seeds"
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
    for written in path.read_text(encoding="utf-8").splitlines():
        if written.startswith("=== "):
            name = written[4:].strip()
            texts[name] = []
            continue
        line = written
        mark = _MARK.search(line)
        if mark is not None:
            line = line[: mark.start()]
            cwes = frozenset(int(one) for one in mark[1].split("|"))
            seeds.append(Seed(name, len(texts[name]) + 1, cwes))
        texts[name].append(line.replace("¦", ""))
    return Workspace.of_texts({one: "\n".join(lines) + "\n" for one, lines in texts.items()}), seeds


def findings(detectors: Iterable[Detector], workspace: Workspace) -> list[Finding]:
    """What detectors find."""
    context = DetectorContext()
    return [one for detector in detectors for one in detector.detect(workspace, context)]


def rules_at(detector: Detector, path: str, text: str) -> list[tuple[str, int]]:
    """Rule and line of what a detector finds in one file, by line."""
    found = findings([detector], Workspace.of_texts({path: text}))
    return sorted(((one.rule, one.line) for one in found), key=lambda pair: (pair[1], pair[0]))
