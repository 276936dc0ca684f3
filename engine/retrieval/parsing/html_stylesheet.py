"""`Stylesheet`: what the `style` elements of an HTML page declare for single elements.

Rules of one compound selector are followed: `p`, `.note`, `#menu`, `td.empty.last`, outside of `@media` and
other conditions. They suffice for what hides a part of a page or lays it out as a table. Linked files are not
read.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from engine.retrieval.parsing.html_style import inline_style
from engine.retrieval.parsing.html_tree import Element, elements

_LONGEST = 200_000
_MAX_RULES = 5_000
_MAX_RULES_OF_ONE = 100
"""Rules for one id, class or name, so that the work is linear in the page."""
_MAX_CLASSES = 20
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_SELECTOR = re.compile(r"([a-zA-Z][\w-]*)?((?:[.#][\w-]+)*)")
_PART = re.compile(r"([.#])([\w-]+)")
_FOLLOWED = frozenset(
    """display font-size height left mso-hide max-height max-width opacity overflow position text-decoration
    top visibility white-space width""".split()  # noqa: SIM905
)


class _Rule(NamedTuple):
    """The declarations for elements with this name (or any), id (or any) and these classes."""

    specificity: tuple[bool, int, bool, int]
    name: str
    id: str
    classes: frozenset[str]
    declarations: Mapping[str, str]


class Stylesheet:
    """The rules of one page."""

    def __init__(self, root: Element) -> None:
        """Read all `style` elements inside of an element."""
        self._rules: dict[str, list[_Rule]] = {}
        self._found: dict[tuple[str, str, str, str], Mapping[str, str]] = {}
        self._count, left = 0, _LONGEST
        for element in elements(root):
            if element.name == "style" and left > 0:
                text = "".join(one for one in element.children if isinstance(one, str))[:left]
                left -= len(text)
                self._read(_COMMENT.sub(" ", text))

    def style_of(self, element: Element) -> Mapping[str, str]:
        """Values by property, with those of the element's own `style`, which count more."""
        attributes = element.attributes
        style = attributes.get("style", "")
        if not self._rules:
            return inline_style(style) if style else {}
        key = (element.name, attributes.get("id", ""), attributes.get("class", ""), style)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._declared(*key)
        return found

    def _declared(self, name: str, identifier: str, classes: str, style: str) -> Mapping[str, str]:
        own = classes.split()[:_MAX_CLASSES]
        keys = [name, f"#{identifier}", *(f".{one}" for one in own)]
        rules = [rule for key in dict.fromkeys(keys) for rule in self._rules.get(key, ())]
        merged: dict[str, str] = {}
        for rule in sorted(rules, key=lambda one: one.specificity):
            fits = rule.name in ("", name) and rule.id in ("", identifier)
            if fits and rule.classes.issubset(own):
                merged.update(rule.declarations)
        merged.update(inline_style(style))
        return merged

    def _read(self, text: str) -> None:
        depth = start = 0
        selectors = ""
        for brace in _BRACE.finditer(text):
            if brace[0] == "{":
                if depth == 0:
                    selectors, start = text[start : brace.start()], brace.end()
                depth += 1
            elif depth:
                depth -= 1
                if depth == 0:
                    if "@" not in selectors:
                        self._add(selectors, text[start : brace.start()])
                    start = brace.end()

    def _add(self, selectors: str, body: str) -> None:
        declared = inline_style(body)
        followed = {name: value for name, value in declared.items() if name in _FOLLOWED}
        if not followed:
            return
        for selector in selectors.split(","):
            match = _SELECTOR.fullmatch(selector.strip()[:200])
            if match is None or not match[0] or self._count >= _MAX_RULES:
                continue
            name = (match[1] or "").lower()
            parts = _PART.findall(match[2])
            identifier = next((value for sign, value in parts if sign == "#"), "")
            classes = frozenset(value for sign, value in parts if sign == ".")
            first = f"#{identifier}" if identifier else f".{min(classes)}" if classes else name
            specificity = (bool(identifier), len(classes), bool(name), self._count)
            rule = _Rule(specificity, name, identifier, classes, followed)
            same = self._rules.setdefault(first, [])
            if len(same) < _MAX_RULES_OF_ONE:
                same.append(rule)
                self._count += 1
