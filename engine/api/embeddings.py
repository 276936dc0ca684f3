"""`Embeddings`: the vectors of a batch of texts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector per text, in the order of the texts.

    Attributes:
        model: name of the encoder; vectors of different encoders are not comparable.
        vectors: [texts, dimensions] float32, of unit length: dot products are cosine similarities.
        tokens: total number of tokens, special ones included.
    """

    model: str
    vectors: NDArray[np.float32]
    tokens: int
