"""Values of a text by kind: dates, numbers, money, addresses, identifiers, names, and `name: value` lines.

Each value has its half-open span, and the text of the span contains it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from agents.text.dates import dates
from agents.text.numbers import numbers
from agents.text.proper_names import proper_names
from agents.text.units import unit_named

Kind = Literal[
    "date", "number", "integer", "money", "email", "url", "phone", "id", "name", "labelled"
]

_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_URL = re.compile(r"https?://[^\s<>\"')\]]{1,500}")
_PHONE = re.compile(
    r"(?<![\w.-])(?:\+\d{1,3}[\s/-]?)?(?:\(\d{1,5}\)[\s/-]?)?\d{2,5}(?:[\s/-]\d{2,6}){1,5}(?![\w-])"
)
_ID = re.compile(
    r"(?<![\w-])(?=[\w/-]*\d)(?:[A-Z]{1,6}[-/]?\d[\w/-]{0,30}|\d{2,}(?:[-/][A-Z\d]+)+)(?![\w-])"
)
_CURRENCY = re.compile(
    r"\s?(€|\$|£|₹|¥|EUR|USD|GBP|INR|JPY|CHF|euros?|dollars?|pounds?|rupees?|yen)(?!\w)",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"^[ \t]*[-*•]?[ \t]*([^\W\d_][\w ./()-]{0,60}?)[ \t]*[:=][ \t]+(\S[^\n]{0,400}?)[ \t]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value: its JSON form, and where it stands. `label` is the name before a colon."""

    value: Any
    start: int
    end: int
    label: str = ""


def values_of(text: str, kind: Kind) -> list[FoundValue]:
    """The values of a kind in the order of their places."""
    return list(_FINDERS[kind](text))


def _dates(text: str) -> Iterator[FoundValue]:
    for date in dates(text):
        yield FoundValue(date.iso, date.start, date.end)


def _numbers(text: str) -> Iterator[FoundValue]:
    taken = [(date.start, date.end) for date in dates(text)]
    for number in numbers(text, spelled=True):
        if number.value is None or any(start <= number.start < end for start, end in taken):
            continue
        yield FoundValue(json_number(number.value), number.start, number.end)


def _integers(text: str) -> Iterator[FoundValue]:
    return (found for found in _numbers(text) if isinstance(found.value, int))


def _money(text: str) -> Iterator[FoundValue]:
    for number in numbers(text):
        if number.value is None:
            continue
        before = text[max(0, number.start - 4) : number.start].rstrip()
        after = _CURRENCY.match(text, number.end)
        sign = re.search(r"(€|\$|£|₹|¥|EUR|USD|GBP|INR|JPY|CHF)$", before)
        name = after[1] if after else sign[1] if sign else ""
        unit = unit_named(name) or unit_named(name.lower()) if name else None
        if not name:
            continue
        start = number.start if after else text.rindex(name, 0, number.start)
        end = after.end(1) if after else number.end
        currency = "GBP" if name.lower().startswith("pound") else unit.symbol if unit else name
        yield FoundValue({"amount": json_number(number.value), "currency": currency}, start, end)


def _pattern(pattern: "re.Pattern[str]") -> Any:
    def find(text: str) -> Iterator[FoundValue]:
        for match in pattern.finditer(text):
            found = match.group().rstrip(".,;:")
            yield FoundValue(found, match.start(), match.start() + len(found))

    return find


def _phones(text: str) -> Iterator[FoundValue]:
    for found in _pattern(_PHONE)(text):
        digits = re.sub(r"\D", "", found.value)
        marked = found.value[0] in "+(0"
        if (7 if marked else 9) <= len(digits) <= 15 and not dates(found.value):
            yield found


def _ids(text: str) -> Iterator[FoundValue]:
    taken = [(date.start, date.end) for date in dates(text)]
    for found in _pattern(_ID)(text):
        if not any(start <= found.start < end for start, end in taken):
            yield found


def _proper(text: str) -> Iterator[FoundValue]:
    for name in proper_names(text):
        if not name.begins_sentence:
            yield FoundValue(name.text, name.start, name.start + len(name.text))


def _labelled(text: str) -> Iterator[FoundValue]:
    for match in _LABELLED.finditer(text):
        yield FoundValue(match[2], match.start(2), match.end(2), match[1].strip())


_FINDERS: dict[str, Any] = {
    "date": _dates,
    "number": _numbers,
    "integer": _integers,
    "money": _money,
    "email": _pattern(_EMAIL),
    "url": _pattern(_URL),
    "phone": _phones,
    "id": _ids,
    "name": _proper,
    "labelled": _labelled,
}


def json_number(value: Fraction) -> int | float:
    """An integer where the value is one, otherwise a float."""
    return int(value) if value.denominator == 1 else float(value)
