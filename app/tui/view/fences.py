"""Whether a growing Markdown text ends inside a code fence, followed line by line (CommonMark §4.5).

Appending inside an open fence re-highlights the whole of it, so a long one is shown plain until it
closes (`textual_workarounds/plain_fence.py`). O(new text) a call.
"""

import re

_MAX_INDENT = 3
"""Spaces before a fence; a line further in is indented code."""
_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)$")


class FenceTracker:
    """Follows text that only grows.

    Attributes:
        open_at: offset of the line that opened the fence one is in, or None.
        closed_at: offset just after the line that closed the last fence, or None.
        length: characters seen.
    """

    def __init__(self) -> None:
        self.open_at: int | None = None
        self.closed_at: int | None = None
        self.length = 0
        self._marker = ""
        self._line = ""
        self._line_start = 0

    def feed(self, text: str) -> None:
        """Take in the next piece of the text."""
        for piece in text.splitlines(keepends=True):
            self._line += piece
            self.length += len(piece)
            if piece.endswith("\n"):
                self._end_line()
                self._line, self._line_start = "", self.length

    def finish(self) -> None:
        """The text ended: its last line counts although no newline follows."""
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
