"""Formats numbers for display: short, aligned, with units. Pure functions; `–` means "no sample yet"."""

import time

NONE = "–"


def clamp(value: float, low: float, high: float) -> float:
    """`value`, at least `low` and at most `high`."""
    return max(low, min(high, value))


def compact(count: int) -> str:
    """A count in at most five characters: 812, 1.8k, 24k, 3.1M."""
    if count < 1000:
        return str(count)
    for limit, divisor, unit in ((1e6, 1e3, "k"), (1e9, 1e6, "M"), (float("inf"), 1e9, "G")):
        if count < limit * 0.9995:
            scaled = count / divisor
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    raise AssertionError("the last limit is infinite")


def percent(share: float) -> str:
    """A share of 1 as a whole percentage; a positive share below 1 % is `<1%`."""
    if 0 < share < 0.01:
        return "<1%"
    return f"{share * 100:.0f}%"


def duration(seconds: float | None) -> str:
    """Seconds as `840 µs`, `12 ms`, `1.24 s`, `2 m 05 s`."""
    if seconds is None:
        return NONE
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.00995:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02d} s"


def rate(per_second: float) -> str:
    """A rate: one decimal below 100, none above."""
    return f"{per_second:.1f}" if per_second < 99.95 else f"{per_second:.0f}"


def age(seconds: float) -> str:
    """An elapsed time in one unit: now, 5m, 3h, 2d, 7w, 2y."""
    if seconds < 60:
        return "now"
    for limit, unit, name in (
        (3600, 60, "m"),
        (86_400, 3600, "h"),
        (14 * 86_400, 86_400, "d"),
        (730 * 86_400, 7 * 86_400, "w"),
    ):
        if seconds < limit:
            return f"{int(seconds // unit)}{name}"
    return f"{int(seconds // (365 * 86_400))}y"


def size(nbytes: int) -> str:
    """Bytes in binary units: 98 MiB."""
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1023.5:
            return f"{value:.0f} {unit}" if value >= 9.95 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def clock_time(seconds: float) -> str:
    """`14:05:09`, the local time of day of seconds since the epoch."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))
