"""`DateFormat`: what a format code shows of a date, a time or a duration.

`show_date` shows these parts in ISO 8601.
"""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple, Self

from engine.retrieval.parsing.excel_dates import Moment, rounded_milliseconds

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DATE_PARTS = ("date", "half", "elapsed")
"""Kinds of tokens that show a part of a date, a time or a duration."""
_MAX_FRACTION = 3
"""Digits of a second, as in Excel."""


class Token(NamedTuple):
    """A part of a format code.

    Attributes:
        kind: of dates `date`, `half` (of the day) or `elapsed`; else a name of `number_format`'s groups.
        text: what it shows, or its letters.
    """

    kind: str
    text: str


class DateFormat(NamedTuple):
    """Which parts are shown.

    Attributes:
        parts: of `year`, `month`, `day`, `weekday`, `hour`, `minute`, `second`.
        month_letters: how many letters the month has in the code.
        fraction: digits of a second.
        prefix: words before the first part.
        suffix: words behind the last one.
        duration: of a duration its parts in the order of the code: a unit and how many digits it has at
            least, or an empty unit with a literal; empty otherwise.
    """

    parts: frozenset[str]
    month_letters: int
    fraction: int
    prefix: str
    suffix: str
    duration: tuple[tuple[str, int, str], ...]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Self:
        """The format of a section's tokens, one of which is a date part."""
        units = _units(tokens)
        at = [index for index, unit in enumerate(units) if unit]
        second = max((index for index in at if units[index] == "second"), default=-1)
        fraction = 0
        if second >= 0 and [one.text for one in tokens[second + 1 : second + 2]] == ["."]:
            for one in tokens[second + 2 :]:
                if one.kind != "digit":
                    break
                fraction += 1
        between = tokens[at[0] : at[-1]]
        words = any(_is_word(one) for one in between)
        months = [len(tokens[index].text) for index in at if units[index] == "month"]
        is_duration = any(one.kind == "elapsed" for one in tokens)
        return cls(
            frozenset(units) - {"", "half"},
            max(months, default=0),
            min(fraction, _MAX_FRACTION),
            "".join(one.text for one in tokens[: at[0]] if _is_word(one)),
            "" if words else "".join(one.text for one in tokens[at[-1] + 1 :] if _is_word(one)),
            tuple(_duration(tokens, units)) if is_duration else (),
        )


def show_date(shown: DateFormat, value: Decimal, *, from_1904: bool) -> str | None:
    """A serial number as a date, a time or both, or as a duration; None if it is out of range."""
    unit_ms = 10 ** (3 - shown.fraction)
    if shown.duration:
        if abs(value) > 10**9:
            return None
        return _show_duration(shown, rounded_milliseconds(value, unit_ms))
    moment = Moment.of(value, from_1904=from_1904, unit_ms=unit_ms)
    if moment is None:
        return None
    day, time = _show_day(shown, moment), _show_time(shown, moment.milliseconds)
    weekday = _WEEKDAYS[moment.weekday] if "weekday" in shown.parts else ""
    return " ".join(filter(None, (shown.prefix.strip(), weekday, day, time, shown.suffix.strip())))


def _units(tokens: Sequence[Token]) -> list[str]:
    """The unit of each token, empty for others. `m` behind hours or before seconds is minutes."""
    units = [_unit(one) for one in tokens]
    at = [index for index, unit in enumerate(units) if unit and unit != "half"]
    for before, index in zip([-1, *at], at, strict=False):
        if units[index] == "month" and before >= 0 and units[before] == "hour":
            units[index] = "minute"
    for index, behind in pairwise(at):
        if units[index] == "month" and units[behind] == "second" and len(tokens[index].text) < 3:
            units[index] = "minute"
    return units


def _unit(token: Token) -> str:
    if token.kind == "half":
        return "half"
    if token.kind not in ("date", "elapsed"):
        return ""
    letter, count = token.text[0].lower(), len(token.text)
    if letter == "d":
        return "day" if count < 3 else "weekday"
    if letter == "m":
        return "minute" if token.kind == "elapsed" else "month"
    return {"a": "weekday", "h": "hour", "s": "second"}.get(letter, "year")


def _is_word(token: Token) -> bool:
    """Whether a literal says something: the signs behind Chinese and Japanese numbers do not."""
    return token.kind == "quoted" and any(one.isalpha() and one.isascii() for one in token.text)


def _duration(tokens: Sequence[Token], units: list[str]) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    for one, unit in zip(tokens, units, strict=True):
        if unit and unit != "half":
            found.append((unit, len(one.text), ""))
        elif one.kind in ("literal", "quoted") or one.text == ":":
            found.append(("", 0, one.text))
    return found


def _show_duration(shown: DateFormat, milliseconds: int) -> str:
    """The largest unit counts what the others leave over."""
    seconds, fraction = divmod(abs(milliseconds), 1000)
    whole = {"hour": seconds // 3600, "minute": seconds // 60, "second": seconds}
    within = {"hour": 24, "minute": 60, "second": 60}
    largest = next((one for one in ("hour", "minute", "second") if one in shown.parts), "second")
    pieces = ["-" if milliseconds < 0 else ""]
    for unit, digits, literal in shown.duration:
        if unit in whole:
            count = whole[unit] if unit == largest else whole[unit] % within[unit]
            pieces.append(f"{count:0{min(digits, 2)}d}")
            if unit == "second" and shown.fraction:
                pieces.append(f".{fraction:03d}"[: shown.fraction + 1])
        elif not unit:
            pieces.append(literal)
    return "".join(pieces)


def _show_day(shown: DateFormat, moment: Moment) -> str:
    year, month, day = moment.date.split("-")
    has = shown.parts & {"year", "month", "day"}
    if has == {"year"}:
        return year
    if has == {"year", "month"}:
        return f"{year}-{month}"
    if has == {"month"}:
        return _MONTHS[int(month) - 1] if shown.month_letters > 2 else str(int(month))
    if has == {"day"}:
        return str(int(day))
    return moment.date if has else ""


def _show_time(shown: DateFormat, milliseconds: int) -> str:
    if not shown.parts & {"hour", "minute", "second"}:
        return ""
    seconds, fraction = divmod(milliseconds, 1000)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if "second" not in shown.parts:
        return time
    decimals = f".{fraction:03d}"[: shown.fraction + 1] if shown.fraction else ""
    return f"{time}:{seconds % 60:02d}{decimals}"
