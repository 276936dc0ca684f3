"""Text contrast (WCAG 2.2, 1.4.3): each element's colours by a small part of the cascade.

Selectors of one compound (`p`, `.note`, `#main`, `a.button`) and descendants (`nav a`) are applied; states
and media queries are left out. A pair of colours in one rule is checked even if no page uses it.
"""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.design.colors import Color, contrast, over, parse_color, readable
from agents.detectors.design.page import DYNAMIC, Element, elements_of
from agents.detectors.design.style_sheet import (
    Declaration,
    StyleRule,
    resolve,
    rules_of_file,
    style_rules,
    variables_of,
)
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

LOW_CONTRAST = Rule(
    "low-contrast", Severity.MEDIUM, "Text contrast too low", reference="WCAG 1.4.3"
)
WHITE = Color(255, 255, 255)
NORMAL, LARGE = 4.5, 3.0
_COMPOUND = re.compile(r"([a-zA-Z][\w-]*|\*)?((?:[.#][\w-]+)*)\Z")
_STATES = re.compile(r":(?:link|visited|root)\b|::?[\w-]+(?:\([^)]*\))?")
_BACKGROUNDS = ("background-color", "background")
_HEADINGS = {"h1", "h2"}


def detect_contrast(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """Pairs of text and background colours below the ratio that their size needs."""
    sheets = [(file, rules_of_file(file)) for file in workspace.of("css", "tcss", "html")]
    shared = [rule for file, rules in sheets if file.language == "css" for rule in rules]
    variables = variables_of([rule for _, rules in sheets for rule in rules])
    for file, rules in sheets:
        context.check_cancelled()
        reported: set[int] = set()
        for finding in _of_rules(file, rules, variables):
            reported.add(finding.line)
            yield finding
        if file.language == "html":
            used = [rule for rule in (*shared, *rules) if not rule.conditions]
            yield from _of_elements(file, used, variables, reported)


def _of_rules(
    file: SourceFile, rules: list[StyleRule], variables: dict[str, str]
) -> Iterator[Finding]:
    for rule in rules:
        front, back = rule.get("color"), rule.get(*_BACKGROUNDS)
        if front is None or back is None or ":disabled" in rule.selector:
            continue
        large = _is_large(rule.get("font-size"), rule.get("font-weight"), variables)
        pair = _color(front, variables), _color(back, variables)
        yield from _finding(file, front.line, *pair, rule.selector, large=large)


def _finding(
    file: SourceFile, line: int, front: Color | None, back: Color | None, what: str, *, large: bool
) -> Iterator[Finding]:
    if front is None or back is None or back.alpha < 1.0 or front.alpha == 0.0:
        return
    needed = LARGE if large else NORMAL
    seen = over(front, back)
    ratio = contrast(seen, back)
    if ratio < needed:
        better = readable(seen, back, needed)
        yield LOW_CONTRAST.at(
            file,
            line,
            f"{what or 'The text'}: {seen.hex} on {back.hex} has a contrast of {ratio:.2f}, below "
            f"{needed:g}; {better.hex} would do.",
            severity=Severity.HIGH if ratio < 2.0 else Severity.MEDIUM,
            confidence=0.9,
        )


def _color(declaration: Declaration | None, variables: dict[str, str]) -> Color | None:
    if declaration is None:
        return None
    value = resolve(declaration.value, variables).replace("!important", "").strip()
    found = parse_color(value)
    if found is None and declaration.name == "background" and "url" not in value:
        parts = [parse_color(part) for part in value.split()]
        found = next((part for part in parts if part is not None), None)
    return found


def _is_large(
    size: Declaration | None, weight: Declaration | None, variables: dict[str, str]
) -> bool:
    """At least 24 px, or 18.66 px if bold (WCAG's large-scale text)."""
    if size is None:
        return False
    match = re.match(r"([\d.]+)(px|rem|em|pt)\b", resolve(size.value, variables))
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        return False
    pixels = float(match[1]) * {"px": 1.0, "rem": 16.0, "em": 16.0, "pt": 4 / 3}[match[2]]
    bold = weight is not None and weight.value in ("bold", "bolder", "700", "800", "900")
    return pixels >= (18.66 if bold else 24.0)


def _of_elements(
    file: SourceFile, rules: list[StyleRule], variables: dict[str, str], reported: set[int]
) -> Iterator[Finding]:
    said: set[tuple[str, str]] = set()
    matchers = [(one, parts) for one in rules for parts in _selectors(one.selector)]
    for root in elements_of(file):
        for element in root.walk():
            if not element.text.strip() or element.tag in ("script", "style", "title", "option"):
                continue
            front, front_rule = _inherited(element, ("color",), matchers, variables)
            back, back_rule = _inherited(element, _BACKGROUNDS, matchers, variables)
            if front is None or (front_rule is back_rule and front_rule is not None):
                continue  # nothing is set, or the rule itself was checked
            size, _ = _own(element, ("font-size",), matchers)
            weight, _ = _own(element, ("font-weight",), matchers)
            large = _is_large(size, weight, variables) or (
                size is None and element.tag in _HEADINGS
            )
            back = back or WHITE
            if (front.hex, back.hex) in said or element.line in reported:
                continue
            found = list(_finding(file, element.line, front, back, f"<{element.tag}>", large=large))
            if found:
                said.add((front.hex, back.hex))
            yield from found


Parts = list[re.Match[str]]


def _selectors(text: str) -> Iterator[Parts]:
    """The compounds of each selector of a list; selectors that need more are left out."""
    for one in text.split(","):
        if ":hover" in one or ":focus" in one or ":active" in one or ":disabled" in one:
            continue
        plain = _STATES.sub(lambda match: "" if match.group() in (":link", ":root") else "\0", one)
        parts = [_COMPOUND.match(part) for part in plain.split()]
        if parts and all(part is not None and part.group() for part in parts):
            yield [part for part in parts if part is not None]


def _matches(element: Element, compound: re.Match[str]) -> bool:
    tag, rest = compound.groups()
    if tag and tag != "*" and tag.lower() != element.tag.lower():
        return False
    classes = (element.get("class") or "").split()
    for mark in re.findall(r"[.#][\w-]+", rest):
        if mark[0] == "." and mark[1:] not in classes:
            return False
        if mark[0] == "#" and element.get("id") != mark[1:]:
            return False
    return True


def _applies(element: Element, parts: Parts) -> bool:
    if not _matches(element, parts[-1]):
        return False
    outer = list(parts[:-1])
    for ancestor in element.ancestors():
        if outer and _matches(ancestor, outer[-1]):
            outer.pop()
    return not outer


def _own(
    element: Element, names: tuple[str, ...], matchers: list[tuple[StyleRule, Parts]]
) -> tuple[Declaration | None, StyleRule | None]:
    inline = element.get("style")
    if inline and inline != DYNAMIC:
        for rule in style_rules(f"x {{ {inline} }}", element.line):
            if (found := rule.get(*names)) is not None:
                return found, rule
    best: tuple[tuple[int, int, int], Declaration, StyleRule] | None = None
    for number, (rule, parts) in enumerate(matchers):
        found = rule.get(*names)
        if found is None or not _applies(element, parts):
            continue
        text = " ".join(part.group() for part in parts)
        weight = (text.count("#"), text.count("."), number)
        if best is None or weight >= best[0]:
            best = weight, found, rule
    return (None, None) if best is None else (best[1], best[2])


def _inherited(
    element: Element,
    names: tuple[str, ...],
    matchers: list[tuple[StyleRule, Parts]],
    variables: dict[str, str],
) -> tuple[Color | None, StyleRule | None]:
    for one in (element, *element.ancestors()):
        declaration, rule = _own(one, names, matchers)
        if declaration is not None and declaration.value not in ("inherit", "none"):
            color = _color(declaration, variables)
            if color is None or color.alpha > 0.0 or "color" in names:
                return color, rule
    return None, None


CONTRAST = Detector(
    "contrast",
    "Computes the contrast of text in style sheets and pages.",
    detect_contrast,
    (LOW_CONTRAST,),
)
