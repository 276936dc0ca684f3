"""`Residency`: how much of a token path needs no computation now; ids of pins, which keep it so."""

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Residency:
    """Leading tokens of a path whose KV exists, in whole blocks. A hint: it may change at any time.

    Attributes:
        tokens: length of the path.
        pool_tokens: leading tokens in the pool.
        swap_tokens: tokens after those in the swap tier.
        blocks: the blocks of the pool that hold the tokens in it, the first one first.
    """

    tokens: int
    pool_tokens: int
    swap_tokens: int
    blocks: tuple[int, ...] = ()


def new_pin_id() -> str:
    """An id for a pin, unique among all clients of an engine."""
    return f"pin-{uuid.uuid4().hex}"
