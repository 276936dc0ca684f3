"""The widths of a table's columns: each takes what it needs, and those that need more share what is left."""

from collections.abc import Sequence

WORD_CELLS = 12
"""Longest word for which a column gets room before others get more than their words need."""


def column_widths(needed: Sequence[int], words: Sequence[int], room: int) -> list[int] | None:
    """The width of each column in cells; None if the columns have no room side by side.

    Args:
        needed: cells of the longest line in each column.
        words: cells of the longest word in each column.
        room: cells of all columns together.
    """
    widths = [
        min(need, max(1, min(word, WORD_CELLS))) for need, word in zip(needed, words, strict=True)
    ]
    left = room - sum(widths)
    if left < 0:
        return None
    growing = [at for at, need in enumerate(needed) if widths[at] < need]
    while left > 0 and growing:
        narrowest = min(growing, key=widths.__getitem__)
        widths[narrowest] += 1
        left -= 1
        if widths[narrowest] == needed[narrowest]:
            growing.remove(narrowest)
    return widths
