"""The words of the calendar and the clock: no names, though English writes many of them with a capital.

`calendar_marks` are the months and weekdays of a text, whether it names them or writes a date in numbers, so
that `2026-05-14` and "Thursday, 14 May" are compared.
"""

import re
from collections.abc import Iterator
from datetime import date

from engine.retrieval.store.word_forms import plain_form

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = {name[:length]: at for at, name in enumerate(_MONTHS, 1) for length in (3, len(name))}
_MONTH["sept"] = 9
_WEEKDAY = {name[:length]: at for at, name in enumerate(_WEEKDAYS) for length in (3, len(name))}
_WEEKDAY |= {"tues": 1, "thur": 3, "thurs": 3}
_OTHERS = frozenset((
    "spring", "summer", "autumn", "fall", "winter", "christmas", "easter", "today", "tomorrow", "yesterday",
    "tonight", "noon", "midnight", "morning", "afternoon", "evening", "weekday", "weekend", "week", "month",
    "quarter", "year", "day", "am", "pm", "utc", "gmt", "cet", "cest", "est", "edt", "pst", "pdt", "fy", "kw",
))  # fmt: skip
_PERIOD = re.compile(r"(?:fy|kw|q|h)\d{1,4}")
_WORD = re.compile(r"\b[A-Z][A-Za-z]{2,}\b")
_SMALL = re.compile(rf"\b(?:{'|'.join([*_MONTHS, *_WEEKDAYS])})s?\b")
_MODAL = re.compile(r"\bmay\b|\bmarch\b|\baugust\b")
_DATE = re.compile(
    r"(?<![\w.])(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    r"|(?P<first>\d{1,2})[-/.](?P<second>\d{1,2})[-/.](?P<last>\d{4}|\d{2}))(?![\d])"
)


def is_calendar_word(word: str) -> bool:
    """Whether a word, in any case, is a month, a weekday, a season or another part of a date or time."""
    word = word.lower()
    return (
        is_month_or_weekday(word)
        or word in _OTHERS
        or word.removesuffix("s") in _OTHERS
        or _PERIOD.fullmatch(word) is not None
    )


def is_month_or_weekday(word: str) -> bool:
    """Whether a word in small letters is one of those that `calendar_marks` knows."""
    return any(one in _MONTH or one in _WEEKDAY for one in (word, word.removesuffix("s")))


def calendar_marks(text: str) -> frozenset[str]:
    """The months and weekdays of a text, such as `month 5`; of a date in numbers, those that it may mean."""
    text = plain_form(text)
    words = [one[0].lower() for one in _WORD.finditer(text)]
    words += [one[0] for one in _SMALL.finditer(text) if not _MODAL.fullmatch(one[0])]
    return frozenset(_of_words(words)) | frozenset(_of_dates(text))


def _of_words(words: list[str]) -> Iterator[str]:
    for word in words:
        for one in (word, word.removesuffix("s")):
            if one in _MONTH:
                yield f"month {_MONTH[one]}"
            if one in _WEEKDAY:
                yield f"weekday {_WEEKDAY[one]}"


def _of_dates(text: str) -> Iterator[str]:
    for found in _DATE.finditer(text):
        if found["year"]:
            readings = [(int(found["year"]), int(found["month"]), int(found["day"]))]
        else:
            year = int(found["last"]) + (2000 if len(found["last"]) == 2 else 0)
            one, other = int(found["first"]), int(found["second"])
            readings = [(year, other, one), (year, one, other)]
        for reading in readings:
            try:
                day = date(*reading)
            except ValueError:
                continue
            yield f"month {day.month}"
            yield f"weekday {day.weekday()}"
