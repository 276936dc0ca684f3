"""`inline_style`: the declarations of a `style` attribute, as far as they decide what is seen."""

import re
from collections.abc import Mapping
from functools import lru_cache

_MAX_CHARACTERS = 2_000
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_LENGTH = re.compile(r"([+-]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))\s*([a-z%]*)")
_IMPORTANT = re.compile(r"\s*!\s*important\s*\Z")


@lru_cache(maxsize=4_096)
def inline_style(style: str) -> Mapping[str, str]:
    """Values by property, in lower case. Of a property that is declared twice the last counts."""
    found: dict[str, str] = {}
    for declaration in _COMMENT.sub("", style[:_MAX_CHARACTERS]).split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            found[name.strip().lower()] = _IMPORTANT.sub("", value.strip().lower())
    return found


def is_tiny(value: str, most: float) -> bool:
    """Whether a length is at most so many pixels or points. Of other units only 0 is."""
    match = _LENGTH.match(value.strip())
    if match is None:
        return False
    bound = most if match[2] in ("", "px", "pt") else 0.0
    return 0 <= float(match[1]) <= bound
