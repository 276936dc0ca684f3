"""`values_against_source`: values of structured data that do not occur in the text they were taken from."""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.given import checked_pairs
from agents.text.dates import dates
from agents.text.located import Path, leaves, read_located
from agents.text.numbers import Number, numbers, read_number
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

NOT_IN_SOURCE = Rule("not-in-source", Severity.MEDIUM, "value that does not occur in the source")
WRONG_DATE = Rule("wrong-date", Severity.MEDIUM, "date that does not occur in the source")
WRONG_NUMBER = Rule("wrong-number", Severity.MEDIUM, "number that does not occur in the source")
UNREADABLE = Rule("unreadable-data", Severity.HIGH, "data that is neither JSON nor YAML")

_CURRENCIES = {
    "eur": "€ euro",
    "usd": "$ dollar",
    "gbp": "£ pound",
    "inr": "₹ rupee",
    "jpy": "¥ yen",
}
_WORD_END = re.compile(r"\w")


class _Source:
    def __init__(self, text: str) -> None:
        self.text = _normal(text)
        self.dates = dates(text)
        self.numbers: list[Number] = numbers(text, spelled=True)
        self.digits = re.sub(r"\D", "", text)

    def has_text(self, value: str) -> bool:
        """Whether the value occurs as whole words, whatever the case and the blanks."""
        wanted = _normal(value)
        at = self.text.find(wanted)
        while at >= 0:
            before, after = (
                self.text[at - 1 : at],
                self.text[at + len(wanted) : at + len(wanted) + 1],
            )
            inside = _WORD_END.match(before) and _WORD_END.match(wanted)
            if not inside and not (_WORD_END.match(after) and _WORD_END.match(wanted[-1:])):
                return True
            at = self.text.find(wanted, at + 1)
        return False

    def has_number(self, value: Fraction) -> bool:
        return any(value in number.readings for number in self.numbers)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    schema = context.inputs.get("schema")
    for output, files in checked_pairs(workspace, context, "values"):
        text = "\n".join(file.text for file in files)
        for file in output if files else ():
            context.check_cancelled()
            yield from check_values(file, text, schema if isinstance(schema, Mapping) else {})


def check_values(file: SourceFile, text: str, schema: Mapping[str, Any]) -> Iterator[Finding]:
    """The members of a JSON or YAML file that do not occur in a text.

    Args:
        file: the data.
        text: the source.
        schema: JSON schema of the data; fields with an `enum` are labels and need not occur.
    """
    located = read_located(file.text)
    if located is None or not isinstance(located.value, dict | list):
        yield UNREADABLE.at(file, 1, "The data is neither JSON nor YAML.")
        return
    source = _Source(text)
    for path, value in leaves(located.value):
        if isinstance(value, bool) or value is None or _is_label(schema, path):
            continue
        rule = _missing(str(value), value, source)
        if rule is not None:
            name = ".".join(str(part) for part in path) or "value"
            yield rule.at(
                file,
                located.line(path),
                f"{name}: {value!r:.120} does not occur in the source.",
                confidence=0.9 if rule is not NOT_IN_SOURCE else 0.85,
            )


def _missing(text: str, value: Any, source: _Source) -> Rule | None:
    """The rule that a value breaks, or None if it occurs."""
    if isinstance(value, int | float):
        try:
            exact = Fraction(repr(value))
        except ValueError:  # NaN and infinity
            return WRONG_NUMBER
        return None if source.has_number(abs(exact)) else WRONG_NUMBER
    if not text.strip():
        return None
    whole = [one for one in dates(text) if one.text == text.strip()]
    if whole:
        return None if any(whole[0].agrees(one) for one in source.dates) else WRONG_DATE
    if source.has_text(text):
        return None
    marks = _CURRENCIES.get(text.strip().lower())
    if marks and any(mark in source.text for mark in marks.split()):
        return None
    number = read_number(text)
    if number is not None and number.value is not None:
        return None if source.has_number(number.value) else WRONG_NUMBER
    digits = re.sub(r"\D", "", text)
    is_telephone = len(digits) >= 7 and re.fullmatch(r"[+\d\s()/.-]+", text)
    return None if is_telephone and digits in source.digits else NOT_IN_SOURCE


def _is_label(schema: Mapping[str, Any], path: Path) -> bool:
    node: Any = schema
    for part in path:
        if not isinstance(node, Mapping):
            return False
        node = node.get("items") if isinstance(part, int) else _member(node, part)
    return isinstance(node, Mapping) and ("enum" in node or "const" in node)


def _member(node: Mapping[str, Any], name: str) -> Any:
    properties = node.get("properties")
    return properties.get(name) if isinstance(properties, Mapping) else None


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


VALUES_AGAINST_SOURCE = Detector(
    "values_against_source",
    "Values of structured data that do not occur in the text they were taken from.",
    _detect,
    (NOT_IN_SOURCE, WRONG_DATE, WRONG_NUMBER, UNREADABLE),
)
