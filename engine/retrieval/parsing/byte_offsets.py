"""`ByteOffsets`: between characters of a text and bytes of its encoding."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_ONE_BYTE = frozenset(
    {"ascii", "latin_1", "latin-1", "iso-8859-1", "koi8_r", "koi8_u", "mac_roman", "tis_620"}
)
_ONE_BYTE_PREFIXES = (
    "cp125",
    "iso8859",
    "iso-8859",
    "cp437",
    "cp85",
    "cp86",
    "cp87",
    "mac_",
    "koi8",
)


class ByteOffsets:
    """Translates offsets of one text. Memory: 8 bytes a character, nothing where both are the same."""

    def __init__(self, text: str, encoding: str = "utf-8", start: int = 0) -> None:
        """Prepare the translation.

        Args:
            text: the decoded text.
            encoding: Python's name of its encoding.
            start: offset of its first byte.
        """
        self._start, self._length = start, len(text)
        self._bytes: NDArray[np.int64] | None = _offsets(text, encoding)

    def byte(self, character: int) -> int:
        """The byte offset of a character offset, `len(text)` included."""
        if self._bytes is None:
            return character + self._start
        return int(self._bytes[character]) + self._start

    def bytes(self, characters: Iterable[int]) -> tuple[int, ...]:
        """`byte` of each."""
        if self._bytes is None:
            return tuple(one + self._start for one in characters)
        found = self._bytes[np.fromiter(characters, np.int64)] + self._start
        return tuple(found.tolist())

    def character(self, byte: int) -> int:
        """The offset of the character that contains a byte; clipped to the text."""
        byte -= self._start
        if self._bytes is None:
            return min(max(byte, 0), self._length)
        return max(0, min(int(self._bytes.searchsorted(byte, "right")) - 1, self._length))


def _offsets(text: str, encoding: str) -> NDArray[np.int64] | None:
    """Byte offset of each character and of the end, or None where they equal the characters'."""
    name = encoding.lower()
    if name in _ONE_BYTE or name.startswith(_ONE_BYTE_PREFIXES):
        return None
    if name in ("utf-8", "utf_8", "utf8"):
        if text.isascii():
            return None
        data = np.frombuffer(text.encode(), np.uint8)
        starts = np.flatnonzero((data & 0xC0) != 0x80)
        return np.append(starts, len(data)).astype(np.int64, copy=False)
    if name.startswith(("utf-16", "utf_16")):
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        widths = np.where(points > 0xFFFF, 4, 2)
    elif name.startswith(("utf-32", "utf_32")):
        widths = np.full(len(text), 4)
    else:
        width = {one: len(one.encode(encoding)) for one in set(text)}
        widths = np.fromiter(map(width.__getitem__, text), np.int64, len(text))
    offsets = np.zeros(len(text) + 1, np.int64)
    np.cumsum(widths, out=offsets[1:])
    return offsets
