"""Labels of what one can jump to: one letter each, or two where there are more targets than letters."""

import itertools

LETTERS = "asdfghjklqwertyuiopzxcvbnm"
"""The easiest keys first."""


def make_labels(count: int) -> list[str]:
    """Labels of the same length, so that none begins another; 676 at most."""
    length = 1 if count <= len(LETTERS) else 2
    letters = itertools.islice(itertools.product(LETTERS, repeat=length), count)
    return ["".join(each) for each in letters]
