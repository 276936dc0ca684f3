"""How long a model stays loaded after its last request: seconds, or a duration as Ollama writes it."""

import math
import re

FOR_EVER = math.inf
"""The seconds of a model that is never unloaded for being idle."""

LONGEST_S = 100 * 365 * 86400.0
"""A longer time is for ever: no clock waits for it (`threading.TIMEOUT_MAX` is 292 years)."""
_MAX_EXACT = 2**53
_PART_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(ns|us|µs|ms|s|m|h)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(?:\.[0-9]{1,9})?")
_DURATION = re.compile(rf"[+-]?(?:{_PART.pattern})+")


def keep_alive_seconds(value: object) -> float:
    """Seconds of a `keep_alive`: 0 unloads at once, a negative or very long one never (`FOR_EVER`).

    Args:
        value: a number of seconds, such a number in a string, or a duration such as `5m` or `1h30m`.

    Raises:
        ValueError: the value is neither; the message says what it may be.
    """
    seconds = _seconds(value)
    if seconds is None or math.isnan(seconds):
        raise ValueError(
            "must be a number of seconds or a duration such as 5m or 1h30m; -1 means for ever"
        )
    return seconds if 0 <= seconds <= LONGEST_S else FOR_EVER


def _seconds(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > _MAX_EXACT:  # it may be too large for a float
        return math.inf if value > 0 else -math.inf
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _DURATION.fullmatch(text):
        return None
    total = sum(float(number) * _PART_S[unit] for number, unit in _PART.findall(text))
    return -total if text.startswith("-") else total
