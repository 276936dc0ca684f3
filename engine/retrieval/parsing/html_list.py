"""`ListMarkers`: what stands before the items of an HTML list: `- `, `3. `, `c. `, `iv. `."""

import re

from engine.retrieval.parsing.html_tree import Element
from engine.retrieval.parsing.list_numbers import list_number

_INTEGER = re.compile(r"\s*([+-]?\d{1,9})")
_MOST_ROMAN = 3_999


class ListMarkers:
    """The markers of one list.

    Attributes:
        indent: what stands before them, for a list inside of another.
    """

    def __init__(self, element: Element, depth: int) -> None:
        """Begin; `depth` is the number of lists around it."""
        attributes = element.attributes
        self.indent = "  " * min(depth, 8)
        self._ordered = element.name == "ol"
        self._type = attributes.get("type", "").strip()
        self._step = -1 if "reversed" in attributes else 1
        count = sum(isinstance(one, Element) and one.name == "li" for one in element.children)
        self._next = _integer(attributes.get("start", ""), count if self._step < 0 else 1)

    def next(self, item: Element) -> str:
        """The marker of the next item."""
        if not self._ordered:
            return f"{self.indent}- "
        number = _integer(item.attributes.get("value", ""), self._next)
        self._next = number + self._step
        return f"{self.indent}{_numeral(number, item.attributes.get('type', self._type))}. "


def _integer(value: str, default: int) -> int:
    match = _INTEGER.match(value)
    return default if match is None else int(match[1])


def _numeral(number: int, kind: str) -> str:
    """A number as the standard counts: decimal, with letters or in Roman numerals as far as those go."""
    if kind in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord(kind) + rest) + letters
        return letters
    if kind in ("i", "I") and number <= _MOST_ROMAN:
        return list_number(number, kind)
    return str(number)
