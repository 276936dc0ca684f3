"""`Moment`: the date and time of a serial number, as spreadsheets of Microsoft count them.

A serial number is days since the beginning of the workbook's date system, with the time as a fraction. The
1900 system has a 29 February 1900 that never was (serial 60), and a day 0 before 1 January 1900; both are
shown, as Excel shows them. The 1904 system begins with 1 January 1904 as 0.
"""

from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple, Self

_DAY_MS = 86_400_000
_LAST_DAY = 2_958_465
"""31 December 9999 in the 1900 system."""
_BETWEEN_SYSTEMS = 1_462


class Moment(NamedTuple):
    """A point in time. Without a month the day is none that calendars have.

    Attributes:
        date: in ISO 8601, `2026-06-03`.
        weekday: 0 for Monday.
        milliseconds: since midnight.
    """

    date: str
    weekday: int
    milliseconds: int

    @classmethod
    def of(cls, serial: Decimal, *, from_1904: bool, unit_ms: int) -> Self | None:
        """The moment of a serial number, or None where there is none.

        Args:
            serial: the number.
            from_1904: whether the workbook uses the 1904 date system.
            unit_ms: what is shown, in milliseconds, to which the time is rounded.
        """
        if not -_LAST_DAY < serial <= _LAST_DAY + 1:
            return None
        total = rounded_milliseconds(serial, unit_ms)
        day, milliseconds = divmod(total, _DAY_MS)
        if from_1904:
            day += _BETWEEN_SYSTEMS
        if not 0 <= day <= _LAST_DAY:
            return None
        if not from_1904 and day in (0, 60):
            # Excel's weekdays go on through both, so those before March 1900 are a day late.
            return cls("1900-01-00" if day == 0 else "1900-02-29", (day + 5) % 7, milliseconds)
        is_after_leap_day = from_1904 or day > 60
        first = date(1899, 12, 30) if is_after_leap_day else date(1899, 12, 31)
        return cls((first + timedelta(days=day)).isoformat(), (day + 5) % 7, milliseconds)


def rounded_milliseconds(days: Decimal, unit_ms: int) -> int:
    """Days as milliseconds, in whole units."""
    units = (days * _DAY_MS / unit_ms).quantize(Decimal(1), ROUND_HALF_UP)
    return int(units) * unit_ms


def serial_of(iso: str) -> Decimal | None:
    """The serial number, in the 1900 system, of an ISO 8601 date, time or both; None if it is none."""
    day, _, time = iso.strip().removesuffix("Z").partition("T")
    if ":" in day and not time:
        day, time = "", day
    try:
        days = (date.fromisoformat(day) - date(1899, 12, 30)).days if day else 0
        parts = [Decimal(one) for one in time.split(":")] if time else []
    except (ValueError, ArithmeticError):
        return None
    if len(parts) > 3 or not all(one.is_finite() and 0 <= one < 100 for one in parts):
        return None
    weights = (3600, 60, 1)
    seconds = sum((part * weight for part, weight in zip(parts, weights, strict=False)), Decimal(0))
    if day and days <= 60:  # before the 29 February 1900 that is counted, too
        days -= 1
    return days + seconds / 86_400
