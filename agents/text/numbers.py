"""Numbers in text, with all values that their notation may mean.

`1.234` is 1234 in German and 1.234 in English. Two numbers agree if any of their readings do.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

# A number may not touch a letter: `L-40`, `utf8` and `3rd` are names.
_NUMBER = re.compile(r"(?<![\w.,'’])(?<![A-Za-z]-)\d+(?:[.,'’\u00a0\u202f]\d+)*(?![\w'’])")
_MAX_DIGITS = 40
_TO_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
"""
_WORDS = {word: Fraction(value) for value, word in enumerate(_TO_TWENTY.split())} | {
    "thirty": Fraction(30),
    "forty": Fraction(40),
    "fifty": Fraction(50),
    "sixty": Fraction(60),
    "seventy": Fraction(70),
    "eighty": Fraction(80),
    "ninety": Fraction(90),
    "hundred": Fraction(100),
    "dozen": Fraction(12),
    "half": Fraction(1, 2),
}
_WORD = re.compile(r"\b(" + "|".join(_WORDS) + r")\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Attributes:
        text: as written.
        start: offset of its first character.
        readings: its possible values; empty for what only looks like one, such as the version `2.10.0`.
        value: the likeliest reading, or None.
    """

    text: str
    start: int
    readings: frozenset[Fraction]
    value: Fraction | None

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.start + len(self.text)

    def agrees(self, other: "Number") -> bool:
        """Whether both may have the same value, or are written alike."""
        return self.text == other.text or not self.readings.isdisjoint(other.readings)


def numbers(text: str, *, spelled: bool = False) -> list[Number]:
    """The numbers in order of their places.

    Args:
        text: where to look.
        spelled: find English number words too, such as `six`.
    """
    found = [_number(match.group(), match.start()) for match in _NUMBER.finditer(text)]
    if spelled:
        for match in _WORD.finditer(text):
            value = _WORDS[match.group().lower()]
            found.append(Number(match.group(), match.start(), frozenset([value]), value))
        found.sort(key=lambda number: number.start)
    return found


def is_among(number: Number, others: Iterable[Number]) -> bool:
    """Whether a number agrees with any of the others."""
    return any(number.agrees(other) for other in others)


def read_number(text: str) -> Number | None:
    """The number that a text is as a whole, or None."""
    match = _NUMBER.fullmatch(text.strip())
    number = None if match is None else _number(match.group(), 0)
    return None if number is None or number.value is None else number


def _number(text: str, start: int) -> Number:
    readings = _readings(text)
    return Number(text, start, frozenset(readings), readings[0] if readings else None)


def _readings(text: str) -> list[Fraction]:
    """The values that a notation may mean, the likeliest (in English) first."""
    plain = re.sub(r"['’\u00a0\u202f]", "", text)
    if len(plain) > _MAX_DIGITS:
        return []
    separators = re.findall("[.,]", plain)
    if not separators:
        return [Fraction(int(plain))]
    last = separators[-1]
    groups = re.split("[.,]", plain)
    if len(separators) == 1:
        decimal = Fraction(f"{groups[0]}.{groups[1]}")
        if len(groups[1]) != 3 or len(groups[0]) > 3 or groups[0].startswith("0"):
            return [decimal]
        grouped = Fraction(int("".join(groups)))
        return [grouped, decimal] if last == "," else [decimal, grouped]
    grouped_parts = groups[1:] if len(set(separators)) == 1 else groups[1:-1]
    if any(len(group) != 3 for group in grouped_parts) or last in separators[:-1]:
        same = len(set(separators)) == 1 and all(len(group) == 3 for group in groups[1:])
        return [Fraction(int("".join(groups)))] if same else []
    return [Fraction(f"{''.join(groups[:-1])}.{groups[-1]}")]
