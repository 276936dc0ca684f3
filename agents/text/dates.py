"""Dates in text: ISO, `5 June 2024`, `June 5, 2024`, `31. Dezember 2025`, `3/4/2024`, `2 May`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from agents.text.months import MONTHS

_MONTH = "|".join(sorted((re.escape(name) for name in MONTHS), key=len, reverse=True))
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY_MONTH = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|\.|º|er)?\s+(?:of\s+|de\s+)?({_MONTH})\b\.?"
    r"(?:,?\s+(?:de\s+)?(\d{4})(?!\d))?",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+(\d{{4}})(?!\d))?", re.IGNORECASE
)
_NUMERIC = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)")


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date in a text.

    Attributes:
        text: as written.
        start: offset of its first character.
        readings: possible (year, month, day); year is 0 where none is written. `3/4/2024` has two.
    """

    text: str
    start: int
    readings: tuple[tuple[int, int, int], ...]

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.start + len(self.text)

    @property
    def iso(self) -> str:
        """`2024-06-05`, or `--05-02` where no year is written; the first reading."""
        year, month, day = self.readings[0]
        return f"{year:04d}-{month:02d}-{day:02d}" if year else f"--{month:02d}-{day:02d}"

    def agrees(self, other: "DateMention") -> bool:
        """Whether both may be the same day; a missing year agrees with every year."""
        return any(
            one[1:] == two[1:] and (one[0] == two[0] or not one[0] or not two[0])
            for one in self.readings
            for two in other.readings
        )


def dates(text: str) -> list[DateMention]:
    """The dates in order; overlapping matches give the first pattern's."""
    found: list[DateMention] = []
    for mention in sorted(_all(text), key=lambda one: (one.start, -len(one.text))):
        if not found or mention.start >= found[-1].end:
            found.append(mention)
    return found


def _all(text: str) -> Iterator[DateMention]:
    for match in _ISO.finditer(text):
        yield from _mention(match, (int(match[1]), int(match[2]), int(match[3])))
    for match in _DAY_MONTH.finditer(text):
        yield from _mention(match, (int(match[3] or 0), MONTHS[match[2].lower()], int(match[1])))
    for match in _MONTH_DAY.finditer(text):
        yield from _mention(match, (int(match[3] or 0), MONTHS[match[1].lower()], int(match[2])))
    for match in _NUMERIC.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        # Dots are the European order; a slash or hyphen may be either.
        orders = [(year, second, first)] + ([] if match[2] == "." else [(year, first, second)])
        yield from _mention(match, *orders)


def _mention(match: "re.Match[str]", *readings: tuple[int, int, int]) -> Iterator[DateMention]:
    valid = tuple(dict.fromkeys(one for one in readings if _exists(*one)))
    if valid:
        yield DateMention(match.group(), match.start(), valid)


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year or 2000, month, day)  # 2000 is a leap year: 29 February without a year exists
    except ValueError:
        return False
    return True
