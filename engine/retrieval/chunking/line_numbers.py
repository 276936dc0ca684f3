"""`LineNumbers`: the line on which an offset lies."""

import re
from bisect import bisect_right

_LINE_END = re.compile(r"\r\n?|\n")


class LineNumbers:
    """Lines of a text, from 1; they end with LF, CR LF or CR, as in editors."""

    def __init__(self, text: str) -> None:
        """Find the lines."""
        self._starts = [match.end() for match in _LINE_END.finditer(text)]

    def line(self, offset: int) -> int:
        """The line of a character offset."""
        return bisect_right(self._starts, offset) + 1
