"""Tracks whether a growing Markdown text ends inside a code fence (CommonMark §4.5).

Used to show a long fence plain until it closes (`textual_workarounds/plain_fence.py`). A call costs
O(new text).
"""

import re

_MAX_INDENT = 3
"""Maximum indentation of a fence; a line with more is indented code."""
_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)$")


class FenceTracker:
    """Tracks a text to which pieces are appended.

    Attributes:
        open_at: offset of the line that opened the current fence, or None outside of fences.
        closed_at: offset after the line that closed the last fence, or None.
        length: length of the text.
    """

    def __init__(self) -> None:
        self.open_at: int | None = None
        self.closed_at: int | None = None
        self.length = 0
        self._marker = ""
        self._line = ""
        self._line_start = 0

    def feed(self, text: str) -> None:
        """Append a piece."""
        for piece in text.splitlines(keepends=True):
            self._line += piece
            self.length += len(piece)
            if piece.endswith("\n"):
                self._end_line()
                self._line, self._line_start = "", self.length

    def finish(self) -> None:
        """End the text: its last line counts even without a newline."""
        if self._line:
            self._end_line()
            self._line, self._line_start = "", self.length

    @property
    def open_length(self) -> int:
        """Characters of the open fence so far, 0 outside one."""
        return 0 if self.open_at is None else self.length - self.open_at

    def _end_line(self) -> None:
        line = self._line.rstrip("\n")
        if self.open_at is not None:
            closing = line.strip(" ")
            indent = len(line) - len(line.lstrip(" "))
            if (
                indent <= _MAX_INDENT
                and closing
                and set(closing) == {self._marker[0]}
                and len(closing) >= len(self._marker)
            ):
                self.open_at, self.closed_at = None, self.length
            return
        if (match := _OPENING.match(line)) and not (match[1][0] == "`" and "`" in match[2]):
            self.open_at, self._marker = self._line_start, match[1]
