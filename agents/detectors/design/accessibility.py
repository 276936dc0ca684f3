"""Rules of WCAG 2.2 that can be decided from a page's source: names, labels, roles, keyboard, structure."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from agents.api.data_file import Entry, read_entries
from agents.api.finding import Finding
from agents.detectors.design.page import DYNAMIC, Element, all_elements
from agents.detectors.design.style_sheet import rules_of_file
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "accessibility", entry=RuleEntry)


class Aria(Entry):
    """The roles and attributes of `aria.yaml`, without the prefix `aria-`."""

    roles: frozenset[str]
    attributes: frozenset[str]


@cache
def _known_aria() -> Aria:
    (found,) = read_entries(Path(__file__).with_name("aria.yaml"), Aria)
    return found


_EMPTY_LINK_TEXTS = frozenset(
    ["click here", "here", "more", "read more", "link", "this", "learn more", "details"]
)
_NATIVE = frozenset(
    ["a", "button", "input", "select", "textarea", "summary", "option", "label", "area"]
)
_UNLABELLED_TYPES = frozenset(["hidden", "submit", "button", "reset", "image"])

Check = Callable[[SourceFile, list[Element]], Iterator[Finding]]


def detect_accessibility(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """All rules over pages, JSX and style sheets."""
    for file in workspace.of("html", "javascript", "tsx"):
        context.check_cancelled()
        elements = all_elements(file)
        if elements:
            for check in _CHECKS:
                yield from check(file, elements)
    for file in workspace.of("css", "html"):
        yield from _invisible_focus(file)


def _is_component(element: Element) -> bool:
    """Whether this is a component of a framework, of which the source does not tell what it renders."""
    return element.tag[:1].isupper() or "." in element.tag


def _named(element: Element) -> bool:
    labels = ("aria-label", "aria-labelledby", "title")
    return any((element.get(name) or "").strip() for name in labels)


def _images(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        image = one.tag in ("img", "area") or (one.tag == "input" and one.get("type") == "image")
        if image and one.get("alt") is None and not _named(one) and not _hidden(one):
            if "{...}" not in one.attributes:
                text = 'Add alt text that says what it shows, or alt="" if it is decoration.'
                yield RULES["image-alt"].at(file, one.line, f"<{one.tag}> has no alt text. {text}")
        svg = one.tag == "svg" and one.get("role") == "img"
        if svg and not _named(one) and not any(child.tag == "title" for child in one.children):
            yield RULES["image-alt"].at(file, one.line)


def _hidden(element: Element) -> bool:
    return any(
        one.get("aria-hidden") == "true" or one.get("hidden") is not None or one.get("role") in
        ("presentation", "none")
        for one in (element, *element.ancestors())
    )  # fmt: skip


def _fields(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    labelled = {one.get("for") for one in elements if one.tag == "label" and one.all_text()}
    dynamic = any(one.tag == "label" and one.get("for") == DYNAMIC for one in elements)
    for one in elements:
        field = one.tag in ("input", "select", "textarea")
        if not field or (one.get("type") or "").lower() in _UNLABELLED_TYPES:
            continue
        inside = any(
            outer.tag == "label" and (outer.all_text() or outer.is_dynamic())
            for outer in one.ancestors()
        )
        known = one.get("id") in labelled if one.get("id") else False
        if inside or known or _named(one) or (dynamic and one.get("id") == DYNAMIC):
            continue
        also = " A placeholder is no label." if one.get("placeholder") else ""
        yield RULES["input-label"].at(file, one.line, f"<{one.tag}> has no label.{also}")


def _names(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        button = one.tag == "button" or one.get("role") == "button"
        link = one.tag == "a" and one.get("href") is not None
        if not (button or link) or _named(one) or one.is_dynamic():
            continue
        if any(_is_component(inner) for inner in one.walk() if inner is not one):
            continue
        text = one.all_text()
        titles = any(
            inner.tag == "title" or _named(inner) for inner in one.walk() if inner is not one
        )
        if not text and not titles:
            rule = RULES["link-name"] if link else RULES["button-name"]
            yield rule.at(file, one.line, f"<{one.tag}> has no text and no aria-label.")
        elif link and text.strip(" .:>»→").casefold() in _EMPTY_LINK_TEXTS:
            yield RULES["link-text"].at(
                file, one.line, f"“{text}” does not say where the link goes."
            )


def _frames_and_media(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        if one.tag == "iframe" and not _named(one) and not _hidden(one):
            yield RULES["frame-title"].at(file, one.line)
        if one.tag in ("video", "audio") and one.get("autoplay") is not None:
            if one.get("muted") is None:
                yield RULES["autoplay"].at(file, one.line, f"<{one.tag}> plays sound by itself.")
        if one.tag == "video" and one.get("muted") is None:
            tracks = [inner for inner in one.walk() if inner.tag == "track"]
            kinds = {inner.get("kind") or "subtitles" for inner in tracks}
            if not kinds & {"captions", "subtitles"}:
                yield RULES["captions"].at(file, one.line)
        if one.tag in ("marquee", "blink"):
            yield RULES["motion"].at(file, one.line, f"<{one.tag}> moves and cannot be stopped.")


def _page(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    html = next((one for one in elements if one.tag == "html"), None)
    if html is None:
        return
    if not (html.get("lang") or html.get("xml:lang") or "").strip():
        yield RULES["page-language"].at(file, html.line)
    title = next((one for one in elements if one.tag == "title"), None)
    if title is None or not (title.text.strip() or title.dynamic):
        yield RULES["page-title"].at(file, html.line)
    for one in elements:
        content = (one.get("content") or "").replace(" ", "").lower()
        if one.tag == "meta" and (one.get("name") or "").lower() == "viewport":
            scale = re.search(r"maximum-scale=([\d.]+)", content)
            small = scale is not None and scale[1].strip(".") and float(scale[1][:4].strip(".")) < 2
            if re.search(r"user-scalable=(no|0)", content) or small:
                yield RULES["zoom"].at(file, one.line)
        if one.tag == "meta" and (one.get("http-equiv") or "").lower() == "refresh":
            if not content.startswith("0;"):
                yield RULES["refresh"].at(file, one.line)


def _structure(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    level = 0
    seen: dict[str, int] = {}
    for one in elements:
        if re.fullmatch(r"h[1-6]", one.tag):
            new = int(one.tag[1])
            if level and new > level + 1:
                yield RULES["heading-order"].at(file, one.line, f"<h{new}> follows <h{level}>.")
            level = new
        name = one.get("id")
        if name and name != DYNAMIC and file.language == "html" and "{" not in name:
            if name in seen:
                text = f"The id {name:.60} is also in line {seen[name]}."
                yield RULES["duplicate-id"].at(file, one.line, text)
            seen.setdefault(name, one.line)
        if one.tag == "li" and one.parent is not None:
            outer = one.parent
            if outer.tag not in ("ul", "ol", "menu") and not _is_component(outer) and outer.tag:
                if outer.get("role") != "list" and outer.tag != "template":
                    yield RULES["list-structure"].at(file, one.line)
        if one.tag == "table" and one.get("role") not in ("presentation", "none"):
            cells = [inner.tag for inner in one.walk()]
            if cells.count("tr") > 1 and "td" in cells and "th" not in cells:
                yield RULES["table-headers"].at(file, one.line)


def _keyboard(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        if _is_component(one):
            continue
        clickable = any(
            name in one.attributes for name in ("onclick", "@click", "v-on:click", "(click)")
        )
        keys = any("key" in name for name in one.attributes)
        if clickable and one.tag not in _NATIVE and not (keys and one.get("tabindex") is not None):
            yield RULES["click-without-key"].at(
                file, one.line, f"<{one.tag}> reacts to clicks but not to keys: use <button>."
            )
        elif clickable and one.tag == "a" and one.get("href") is None and not keys:
            yield RULES["click-without-key"].at(file, one.line)
        index = (one.get("tabindex") or "").strip()
        if index.isdecimal() and int(index[:6]) > 0:
            yield RULES["tabindex"].at(
                file, one.line, f"tabindex={index:.6} changes the tab order."
            )
        focusable = one.tag in _NATIVE or index == "0"
        if one.get("aria-hidden") == "true" and focusable and index != "-1":
            if one.tag not in ("label", "option") and one.get("disabled") is None:
                text = f"<{one.tag}> is hidden from screen readers but can be focused."
                yield RULES["hidden-focus"].at(file, one.line, text)


def _aria(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    ids = {one.get("id") for one in elements}
    any_dynamic = DYNAMIC in ids or any(_is_component(one) for one in elements)
    for one in elements:
        roles = (one.get("role") or "").split()
        if (
            roles
            and DYNAMIC not in roles
            and not _known_aria().roles & set(roles)
            and "{" not in roles[0]
        ):
            if not roles[0].startswith(("doc-", "graphics-")):
                yield RULES["role"].at(file, one.line, f"There is no role {roles[0]:.40}.")
        for name, value in one.attributes.items():
            if name.startswith("aria-") and name[5:] not in _known_aria().attributes:
                yield RULES["aria"].at(file, one.line, f"There is no attribute {name:.40}.")
            refers = name in ("aria-labelledby", "aria-describedby", "aria-controls")
            if refers and value not in ("", DYNAMIC) and "{" not in value and not any_dynamic:
                missing = [target for target in value.split() if target not in ids]
                if missing and name != "aria-controls":
                    text = f"{name} refers to {missing[0]:.40}, which is no id."
                    yield RULES["aria"].at(file, one.line, text)


def _invisible_focus(file: SourceFile) -> Iterator[Finding]:
    rules = rules_of_file(file)
    for rule in rules:
        outline = rule.get("outline", "outline-width", "outline-style")
        removed = outline is not None and re.match(r"(none|0)(px)?\b", outline.value)
        global_reset = rule.selector.strip() in ("*", "*:focus")
        if not removed or outline is None or not (":focus" in rule.selector or global_reset):
            continue
        if ":focus:not(:focus-visible)" in rule.selector:
            continue
        replaced = rule.get(
            "box-shadow", "border", "border-color", "background-color", "background"
        )
        base = rule.selector.replace(":focus-visible", "").replace(":focus", "").strip()
        elsewhere = any(
            other is not rule and ":focus-visible" in other.selector and base in other.selector
            for other in rules
        )
        if replaced is None and not elsewhere:
            yield RULES["focus-visible"].at(
                file, outline.line, f"{rule.selector:.80} hides the focus and shows nothing else."
            )


_CHECKS: tuple[Check, ...] = (
    _images,
    _fields,
    _names,
    _frames_and_media,
    _page,
    _structure,
    _keyboard,
    _aria,
)

ACCESSIBILITY = Detector(
    "accessibility", "Checks pages and JSX against rules of WCAG 2.2.", detect_accessibility, RULES
)
