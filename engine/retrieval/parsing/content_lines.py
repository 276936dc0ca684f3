"""`content_lines`: the lines of a calendar (iCalendar, RFC 5545) or a business card (vCard, RFC 6350)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_FOLD = re.compile(r"\r?\n[ \t]")
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:\";]*(?:\"[^\"]*\"[^:\";]*)*)*):(.*)")
_ESCAPE = re.compile(r"\\(.)")
_LONGEST = 10_000


class ContentLine(NamedTuple):
    """A line: its name in capitals, its parameters as they stand, and its value."""

    name: str
    parameters: str
    value: str


def content_lines(text: str) -> Iterator[ContentLine]:
    """The lines, unfolded, without what is no line."""
    for line in _FOLD.sub("", text).splitlines():
        match = _LINE.fullmatch(line[:_LONGEST].strip())
        if match is not None:
            yield ContentLine(match[1].upper(), match[2], match[3])


def unescaped(value: str) -> str:
    """A text value on one line."""
    text = _ESCAPE.sub(lambda match: " " if match[1] in "nN" else match[1], value)
    return " ".join(text.split())
