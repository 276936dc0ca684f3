"""Binary encoding of token data in the database: ids as u32, logprobs as float16, flags as bits.

Numbers are little-endian.
"""

import struct
import sys
from array import array
from collections.abc import Sequence

import numpy as np

from engine.api.request import TopLogprob

_HALF_MIN = -65504.0


def pack_ids(ids: Sequence[int]) -> bytes:
    """[n] token ids → 4n bytes."""
    packed = array("I", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_ids(blob: bytes) -> tuple[int, ...]:
    """4n bytes → [n] token ids."""
    ids = array("I")
    ids.frombytes(blob)
    if sys.byteorder == "big":
        ids.byteswap()
    return tuple(ids)


def pack_flags(flags: Sequence[bool]) -> bytes:
    """[n] flags → ⌈n/8⌉ bytes, the first flag in the lowest bit."""
    return np.packbits(np.array(flags, np.bool_), bitorder="little").tobytes()


def unpack_flags(blob: bytes, count: int) -> tuple[bool, ...]:
    """⌈count/8⌉ bytes → [count] flags."""
    bits = np.unpackbits(np.frombuffer(blob, np.uint8), count=count, bitorder="little")
    return tuple(bits.astype(np.bool_).tolist())


def _half(value: float) -> float:
    # -inf (a token forced by a bias) and values below the float16 range become its minimum.
    return max(value, _HALF_MIN)


def pack_logprobs(values: Sequence[float]) -> bytes:
    """[n] log-probabilities → 2n bytes (float16: about three digits)."""
    return struct.pack(f"<{len(values)}e", *map(_half, values))


def unpack_logprobs(blob: bytes) -> tuple[float, ...]:
    """2n bytes → [n] log-probabilities."""
    return struct.unpack(f"<{len(blob) // 2}e", blob)


def pack_top(positions: Sequence[Sequence[TopLogprob]]) -> bytes:
    """[n] lists of alternatives → per position a count (u8), then (u32 id, f16 logprob) pairs."""
    out = bytearray()
    for alternatives in positions:
        out.append(len(alternatives))
        for item in alternatives:
            out += struct.pack("<Ie", item.token_id, _half(item.logprob))
    return bytes(out)


def unpack_top(blob: bytes) -> tuple[tuple[TopLogprob, ...], ...]:
    """The inverse of `pack_top`."""
    positions: list[tuple[TopLogprob, ...]] = []
    at = 0
    while at < len(blob):
        end = at + 1 + 6 * blob[at]
        pairs = struct.iter_unpack("<Ie", blob[at + 1 : end])
        positions.append(tuple(TopLogprob(token_id, logprob) for token_id, logprob in pairs))
        at = end
    return tuple(positions)
