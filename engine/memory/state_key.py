"""`StateKeys`: 32 bytes that identify the tokens up to a block border, for the state store.

A key is the BLAKE2b hash of the cache salt and of all identity tokens before the border. Unlike the keys of
KV blocks it is trusted without a comparison of tokens: with 256 bits no two prefixes have the same.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray


class StateKeys:
    """Computes keys; those of a running row continue where its last one ended."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[hashlib.blake2b, int]] = {}  # row → hash so far, its tokens

    def of_row(self, row: int, identity: NDArray[np.int32], cache_salt: bytes) -> bytes:
        """The key of a running row's first tokens; they are at least as many as at the last call."""
        begun = self._rows.get(row)
        hashed, done = (_begin(cache_salt), 0) if begun is None else begun
        hashed.update(identity[done:].tobytes())
        self._rows[row] = hashed, len(identity)
        return hashed.digest()

    def forget(self, row: int) -> None:
        """The row holds no request any more."""
        self._rows.pop(row, None)

    def of_prefixes(
        self, identity: NDArray[np.int32], cache_salt: bytes, lengths: list[int]
    ) -> list[tuple[int, bytes]]:
        """Each of the ascending lengths and the key of so many tokens, the longest one first."""
        hashed, done = _begin(cache_salt), 0
        keys: list[tuple[int, bytes]] = []
        for length in lengths:
            hashed.update(identity[done:length].tobytes())
            done = length
            keys.append((length, hashed.digest()))
        return keys[::-1]


def _begin(cache_salt: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(bytes([len(cache_salt)]) + cache_salt, digest_size=32)
