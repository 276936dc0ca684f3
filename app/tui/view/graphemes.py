"""Graphemes and their width in cells.

Rich's count of cells decides about widths, as in all of Textual. Rich does not join the halves of flags, skin
tones, or Indic consonants that a virama connects; these are joined here.
"""

import unicodedata
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes

_JOINER = "\u200d"
_VIRAMA_CLASS = 9  # canonical combining class


class Grapheme(NamedTuple):
    """One character as a reader sees it, and its width."""

    text: str
    cells: int


def graphemes(text: str) -> list[Grapheme]:
    """The graphemes of a text, in order; joined, they are the text."""
    if text.isascii() and text.isprintable():
        return [Grapheme(character, 1) for character in text]
    found: list[Grapheme] = []
    for start, end, cells in split_graphemes(text)[0]:
        piece = text[start:end]
        if found and _continues(found[-1].text, piece[0]):
            joined = found.pop().text + piece
            found.append(Grapheme(joined, cell_len(joined)))
        else:
            # Of a text that begins with a joiner Rich's two counts differ; the larger one is drawn.
            found.append(Grapheme(piece, max(cells, cell_len(piece))))
    return found


def joins(before: str, after: str) -> bool:
    """Whether a cut between two texts would split a grapheme."""
    return bool(before and after) and _continues(before[-_LONGEST:], after[0])


_LONGEST = 32
"""Number of characters before a cut that are looked at."""


def _continues(before: str, character: str) -> bool:
    """Whether `character` belongs to the grapheme that ends `before`."""
    if character.isascii():
        return before[-1] == "\r" and character == "\n"
    if _is_regional(character):
        run = len(before) - len(before.rstrip(_REGIONAL))
        return run % 2 == 1
    last = before[-1]
    return (
        character == _JOINER
        or last == _JOINER
        or (unicodedata.combining(last) == _VIRAMA_CLASS and character.isalpha())
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
    )


_REGIONAL = "".join(chr(code) for code in range(0x1F1E6, 0x1F200))


def _is_regional(text: str) -> bool:
    return text[0] in _REGIONAL
