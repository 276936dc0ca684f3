"""Layouts: boxes that overlap or leave the screen, and fixed sizes that do not fit narrow screens."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from agents.api.finding import Finding, Severity
from agents.detectors.design.style_sheet import Declaration, StyleRule, rules_of_file
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

OVERLAP = Rule("overlap", Severity.MEDIUM, "Boxes that overlap")
OVERFLOW = Rule("overflow", Severity.MEDIUM, "Box outside of its screen")
ZERO_SIZE = Rule("zero-size", Severity.MEDIUM, "Box without an area")
FIXED_WIDTH = Rule(
    "fixed-width", Severity.LOW, "Fixed width wider than a phone", reference="WCAG 1.4.10"
)
SMALL_TARGET = Rule(
    "target-size", Severity.LOW, "Target smaller than 24 px", reference="WCAG 2.5.8"
)
OFF_GRID = Rule("off-grid", Severity.INFO, "Spacing beside the grid")
PHONE_PX = 320
TARGET_PX = 24
_PIXELS = re.compile(r"(\d{1,6}(?:\.\d+)?)px")
_SPACING = re.compile(r"(?:margin|padding|gap)(?:-\w+)*\Z")
_TARGETS = re.compile(
    r"(^|[\s,>+~])(button|a|input|\.btn[\w-]*|\.button[\w-]*|\.icon-button)(?=$|[\s,:.])"
)


class Box(NamedTuple):
    """A rectangle of a layout file, in its unit."""

    name: str
    x: float
    y: float
    width: float
    height: float
    line: int

    def overlaps(self, other: "Box") -> bool:
        """Whether the two have an area in common."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def contains(self, other: "Box") -> bool:
        """Whether the other lies inside this one."""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.x + other.width <= self.x + self.width
            and other.y + other.height <= self.y + self.height
        )


def boxes_of(value: Any, file: SourceFile | None = None) -> tuple[list[Box], float, float]:
    """The boxes of a layout's JSON, and the screen's size (infinite if it is not given).

    A layout is an object with `boxes`, `regions`, `elements` or `items`: objects with a name, `x`, `y`,
    `width` (or `w`) and `height` (or `h`).
    """
    infinite = float("inf")
    if not isinstance(value, dict):
        return [], infinite, infinite
    screen = value.get("screen") or value.get("viewport") or value.get("size") or value
    width = _number(screen, "width", "w") if isinstance(screen, dict) else None
    height = _number(screen, "height", "h") if isinstance(screen, dict) else None
    listed: Any = next(
        (value[key] for key in ("boxes", "regions", "elements", "items") if key in value), []
    )
    boxes: list[Box] = []
    at = 0
    for number, one in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(one, dict):
            continue
        x, y = _number(one, "x"), _number(one, "y")
        wide, high = _number(one, "width", "w"), _number(one, "height", "h")
        if x is None or y is None or wide is None or high is None:
            continue
        name = str(one.get("name") or one.get("id") or number)
        line = 0
        if file is not None:
            found = file.text.find(json.dumps(name, ensure_ascii=False), at)
            at = found if found >= 0 else at
            line = file.text.count("\n", 0, at) + 1
        boxes.append(Box(name, x, y, wide, high, line))
    return boxes, width or infinite, height or infinite


def _number(value: dict[str, Any], *names: str) -> float | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
    return None


def problems_of(boxes: list[Box], width: float, height: float) -> Iterator[tuple[Rule, Box, str]]:
    """Overlaps of boxes that do not contain each other, and boxes outside of the screen."""
    for one, other in combinations(boxes[:500], 2):
        if one.overlaps(other) and not (one.contains(other) or other.contains(one)):
            yield OVERLAP, other, f"{other.name} overlaps {one.name}."
    for box in boxes:
        if box.width <= 0 or box.height <= 0:
            yield ZERO_SIZE, box, f"{box.name} has no area and shows nothing."
        if box.x < 0 or box.y < 0 or box.x + box.width > width or box.y + box.height > height:
            yield OVERFLOW, box, f"{box.name} leaves the screen of {width:g} × {height:g}."


def detect_layout(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """Layout files (JSON with boxes) and style sheets."""
    for file in workspace.of("json"):
        context.check_cancelled()
        if not re.search(r'"(?:boxes|regions|elements|items)"', file.text):
            continue
        try:
            data = json.loads(file.text)
        except (ValueError, RecursionError):
            continue
        for one in data if isinstance(data, list) else [data]:
            for rule, box, message in problems_of(*boxes_of(one, file)):
                yield rule.at(file, box.line, message)
    for file in workspace.of("css", "html"):
        context.check_cancelled()
        rules = rules_of_file(file)
        yield from _widths(file, rules)
        yield from _absolute(file, rules)


def _pixels(declaration: Declaration | None) -> float | None:
    """The pixels of a value such as `12px` or `0`, or None."""
    if declaration is None:
        return None
    match = _PIXELS.fullmatch(declaration.value)
    return 0.0 if declaration.value == "0" else None if match is None else float(match[1])


def _widths(file: SourceFile, rules: list[StyleRule]) -> Iterator[Finding]:
    for rule in rules:
        wide_only = any("min-width" in condition for condition in rule.conditions)
        fixed = rule.get("width", "min-width")
        pixels = _pixels(fixed)
        most = rule.get("max-width")
        bounded = most is not None and "%" in most.value
        if fixed is not None and pixels is not None and pixels > PHONE_PX and not wide_only:
            if not bounded and not rule.selector.startswith(("@page", "img", "svg")):
                text = (
                    f"{rule.selector:.60} is {pixels:g} px wide, wider than a phone: use max-width."
                )
                yield FIXED_WIDTH.at(file, fixed.line, text)
        if _TARGETS.search(rule.selector):
            for name in ("width", "height"):
                declared = rule.get(name)
                size = _pixels(declared)
                if size is not None and declared is not None and 0 < size < TARGET_PX:
                    text = f"{rule.selector:.60} has a {name} of {size:g} px, below {TARGET_PX}."
                    yield SMALL_TARGET.at(file, declared.line, text)


def _absolute(file: SourceFile, rules: list[StyleRule]) -> Iterator[Finding]:
    """Absolutely positioned boxes with pixel sizes, in one style sheet."""
    boxes: list[Box] = []
    for rule in rules:
        position = rule.get("position")
        if position is None or position.value not in ("absolute", "fixed") or rule.conditions:
            continue
        x, y, width, height = (
            _pixels(rule.get(name)) for name in ("left", "top", "width", "height")
        )
        if x is not None and y is not None and width is not None and height is not None:
            boxes.append(Box(rule.selector, x, y, width, height, rule.line))
    for found, box, message in problems_of(boxes, float("inf"), float("inf")):
        yield found.at(file, box.line, message, confidence=0.6)


def spacings(rules: list[StyleRule]) -> list[tuple[float, int]]:
    """Pixel values of margins, paddings and gaps, with their lines."""
    return [
        (float(match[1]), one.line)
        for rule in rules
        for one in rule.declarations
        if _SPACING.match(one.name)
        for match in _PIXELS.finditer(one.value)
    ]


_SPACING_VARIABLE = re.compile(r"(?i)^--.*(space|spacing|gap|gutter|margin|padding|inset)")


def detect_spacing(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """Spacings that are no multiple of the style sheet's own unit, where three fifths of them are."""
    for file in workspace.of("css", "html"):
        context.check_cancelled()
        rules = rules_of_file(file)
        found = [one for one in spacings(rules) if one[0] > 2]
        named = [
            float(match[1])
            for rule in rules
            for one in rule.declarations
            if _SPACING_VARIABLE.search(one.name) and (match := _PIXELS.fullmatch(one.value))
        ]
        for unit in (8, 5, 4):
            off = [one for one in found if one[0] % unit]
            known = len(found) + len(named)
            if (
                known >= 5
                and (len(off) + sum(value % unit > 0 for value in named)) * 5 <= known * 2
            ):
                for value, line in off:
                    yield OFF_GRID.at(file, line, f"{value:g} px is beside the grid of {unit} px.")
                break


LAYOUT = Detector(
    "layout",
    "Looks for overlaps, overflow and fixed sizes in layout files and style sheets.",
    detect_layout,
    (OVERLAP, OVERFLOW, ZERO_SIZE, FIXED_WIDTH, SMALL_TARGET),
)
SPACING = Detector(
    "spacing", "Compares spacings with the style sheet's own grid.", detect_spacing, (OFF_GRID,)
)
