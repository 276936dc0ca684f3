"""`SourceLines`: the lines of a file with their own ends, so that an edit leaves all others as they are."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.api.errors import InvalidTask

_BOM = "\ufeff"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")


@dataclass(frozen=True, slots=True)
class Splice:
    """New lines in place of a range of lines, half-open, from 0; an empty range inserts before `start`."""

    start: int
    end: int
    lines: tuple[str, ...]


class SourceLines:
    """The text of a file; immutable.

    Attributes:
        lines: without their ends and without a byte order mark.
    """

    def __init__(self, data: bytes, path: str = "The file") -> None:
        """Read the bytes of a file.

        Raises:
            InvalidTask: it is not a text in UTF-8.
        """
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTask(f"{path} is not UTF-8 and cannot be edited.") from error
        if "\0" in text:
            raise InvalidTask(f"{path} is not a text file.")
        self._bom = text[:1] if text.startswith(_BOM) else ""
        found = [(one[1], one[2]) for one in _LINE.finditer(text.removeprefix(_BOM)) if one[0]]
        self.lines = tuple(line for line, _ in found)
        self._ends = tuple(end for _, end in found)
        counted = Counter(end for end in self._ends if end)
        self._newline = counted.most_common(1)[0][0] if counted else "\n"

    @property
    def text(self) -> str:
        """The lines, each with LF: for parsing. Line numbers are those of `lines`."""
        return "".join(line + "\n" for line in self.lines)

    def spliced(self, splices: Iterable[Splice]) -> bytes:
        """The bytes with the splices, whose ranges do not overlap. New lines get the file's usual end.

        A file without a newline at its end has none afterwards, and one with it keeps it.
        """
        result: list[tuple[str, str]] = []
        at = 0
        old = list(zip(self.lines, self._ends, strict=True))
        for one in sorted(splices, key=lambda splice: (splice.start, splice.end)):
            if one.start < at or one.end > len(old):
                raise ValueError("splices overlap, or lie outside the file")
            result += old[at : one.start]
            result += [(line, self._newline) for line in one.lines]
            at = one.end
        result += old[at:]
        last = self._ends[-1] if self._ends else self._newline
        if result:
            result = [(line, end or self._newline) for line, end in result]
            result[-1] = (result[-1][0], "" if not last else result[-1][1])
        text = "".join(line + end for line, end in result)
        return (self._bom + text).encode("utf-8", "surrogatepass")


def leading_space(line: str) -> str:
    """The blanks and tabs at the beginning of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def changed_range(old: Sequence[str], new: Sequence[str]) -> tuple[int, int, int]:
    """How many lines at the beginning, and at the end, both have in common; and where the new ones end."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return first, len(old) - last, len(new) - last
