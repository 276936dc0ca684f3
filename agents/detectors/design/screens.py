"""The detector `screens`: a specification of screens against itself: components, ways between screens, states.

A specification is a YAML or JSON object with a list `screens` of objects with a `name`; optional are `components`, `states`
and `next` of a screen, and the inventory `components` of the whole.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_MEDIUM, _LOW = Severity.MEDIUM, Severity.LOW
MISSING_COMPONENT = Rule(
    "missing-component", _MEDIUM, "Component that the inventory lacks", reference="H4"
)
MISSING_SCREEN = Rule(
    "missing-screen", _MEDIUM, "Way to a screen that does not exist", reference="H3"
)
DEAD_END = Rule("dead-end-screen", _MEDIUM, "Screen without a way on", reference="H3")
UNREACHABLE = Rule("unreachable-screen", _MEDIUM, "Screen that no way leads to", reference="H7")
RULES = (MISSING_COMPONENT, MISSING_SCREEN, DEAD_END, UNREACHABLE)
_MAX_BYTES = 200_000


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("yaml", "json"):
        context.check_cancelled()
        if len(file.data) <= _MAX_BYTES and re.search(
            r"(?m)^[\s{]*[\"']?screens[\"']?\s*:", file.text
        ):
            yield from _check(file)


def _check(file: SourceFile) -> Iterator[Finding]:
    try:
        data = yaml.safe_load(file.text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    listed = data.get("screens") if isinstance(data, Mapping) else None
    screens = (
        [one for one in listed if isinstance(one, Mapping) and "name" in one]
        if isinstance(listed, list)
        else []
    )
    names = {str(one["name"]) for one in screens}
    inventory = _texts(data.get("components")) if isinstance(data, Mapping) else []
    reached = {target for one in screens for target in _texts(one.get("next"))}
    starts = {str(data.get("start"))} | {str(screens[0]["name"])} if screens else set()
    for one in screens:
        name = str(one["name"])
        line, end = _lines(file, name)
        for component in _texts(one.get("components")):
            if inventory and component not in inventory:
                at = _line_within(file, component, line, end)
                yield MISSING_COMPONENT.at(
                    file, at, f"{component} is not in the inventory of components."
                )
        for target in _texts(one.get("next")):
            if target not in names:
                at = _line_within(file, target, line, end)
                yield MISSING_SCREEN.at(file, at, f"There is no screen {target}.")
        if (
            "next" in one
            and not _texts(one["next"])
            and not re.search(r"(?i)done|end|exit|final|success|thank", name)
        ):
            yield DEAD_END.at(file, line, f"Nothing leads on from {name}.", end_line=end)
        if name not in reached | starts and any("next" in other for other in screens):
            yield UNREACHABLE.at(file, line, f"No screen leads to {name}.", end_line=end)


def _texts(value: Any) -> list[str]:
    """The names in a list of names or of objects with a name."""
    return [
        str(one.get("name", "")) if isinstance(one, Mapping) else str(one)
        for one in (value if isinstance(value, list) else [])
    ]


def _lines(file: SourceFile, name: str) -> tuple[int, int]:
    """First and last line of the screen of this name."""
    entry = re.compile(rf"\bname[\"']?\s*:\s*[\"']?{re.escape(name)}[\"']?\s*(,|\}}|$)")
    any_entry = re.compile(r"\bname[\"']?\s*:")
    first = next((number for number, line in enumerate(file.lines, 1) if entry.search(line)), 1)
    last = first
    for number in range(first + 1, len(file.lines) + 1):
        line = file.lines[number - 1]
        if any_entry.search(line) or (line and not line[0].isspace()):
            break
        if line.strip():
            last = number
    return first, last


def _line_within(file: SourceFile, text: str, first: int, last: int) -> int:
    word = re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-])")
    return next(
        (number for number in range(first, last + 1) if word.search(file.lines[number - 1])), first
    )


SCREENS = Detector(
    "screens",
    "Compares a specification of screens with itself: components, ways, dead ends.",
    _detect,
    RULES,
)
