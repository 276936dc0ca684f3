"""Parses and formats sizes in bytes: `512MiB`, `2 GB`, `1073741824`."""

import re

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}


def parse_size(text: str) -> int:
    """Bytes; `k`, `m`, `g`, `t` and `KiB`… count in 1024s, `KB`… in 1000s, in any letter case.

    Raises:
        ValueError: not a size.
    """
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError("should be a size such as 512MiB or 2GB")
    return int(float(match[1]) * unit)


def format_size(size: int) -> str:
    """Three significant digits in binary units, such as `1.50 GiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    if unit == "B":
        return f"{size} B"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
