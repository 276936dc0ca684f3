"""`common_prefix`: how many token ids two sequences begin with in common."""

import numpy as np
from numpy.typing import NDArray


def common_prefix(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """The length of the longest common prefix of two arrays of token ids."""
    size = min(len(one), len(other))
    differs = one[:size] != other[:size]
    return int(differs.argmax()) if differs.any() else size
