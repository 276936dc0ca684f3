"""`ForkPrice`: what continuing given tokens would cost now."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForkPrice:
    """The cost of a request with these tokens, before its first new token.

    A quote, not a promise: blocks may be evicted, or cached, before the request comes. A fork of a
    request that still runs may cost less, because the block it is writing is not in the cache.

    Attributes:
        prefill_tokens: tokens to compute; at least one.
        copied_blocks: KV blocks to copy, 0 or 1.
        seconds: predicted from the prefill speed measured so far, without time in the queue; None
            before the first prefill.
    """

    prefill_tokens: int
    copied_blocks: int
    seconds: float | None


def price_of(tokens: int, cached_blocks: int, block_size: int, speed: float | None) -> ForkPrice:
    """The price of `tokens` tokens whose first blocks are cached.

    Args:
        tokens: how many there are.
        cached_blocks: whole blocks found, at most all of them.
        block_size: tokens in a block.
        speed: prompt tokens a second, or None if none was measured.
    """
    whole = cached_blocks > 0 and cached_blocks * block_size >= tokens
    prefill = 1 if whole else tokens - cached_blocks * block_size
    return ForkPrice(prefill, int(whole), None if speed is None else prefill / speed)
