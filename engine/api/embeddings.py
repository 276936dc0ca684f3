"""`Embeddings`: what embedding some texts gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector a text, in the texts' order.

    Attributes:
        model: which encoder made them; vectors of different ones do not compare.
        vectors: [N, dimensions] float32, each of length 1: dot products are cosines.
        tokens: tokens of all texts together, special ones included.
    """

    model: str
    vectors: NDArray[np.float32]
    tokens: int
