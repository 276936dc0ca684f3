"""`ForkPrice`: what continuing given tokens would cost now."""

from dataclasses import dataclass

from engine.pipeline.work import WorkPredictor


@dataclass(frozen=True, slots=True)
class ForkPrice:
    """The cost of a request with these tokens, before its first new token.

    A quote, not a promise: blocks may be evicted, or cached, before the request comes. A fork of a
    request that still runs may cost less, because the block it is writing is not in the cache.

    Attributes:
        prefill_tokens: tokens to compute; at least one.
        copied_blocks: KV blocks to copy inside the pool, 0 or 1.
        swapped_blocks: KV blocks to copy in from the swap tier.
        seconds: predicted by the step-time model, for an engine that does nothing else; None while
            it knows nothing of this machine.
    """

    prefill_tokens: int
    copied_blocks: int
    seconds: float | None
    swapped_blocks: int = 0


def price_of(
    tokens: int,
    cached_blocks: int,
    block_size: int,
    work: WorkPredictor,
    *,
    swapped_blocks: int = 0,
    swap_seconds: float | None = 0.0,
) -> ForkPrice:
    """The price of `tokens` tokens whose first blocks are cached.

    Args:
        tokens: how many there are.
        cached_blocks: whole blocks found in the pool, at most all of them.
        block_size: tokens in a block.
        work: predicts the seconds.
        swapped_blocks: whole blocks after those that the swap tier has; not the last token's.
        swap_seconds: what copying those takes, or None if that was never measured.
    """
    cached = (cached_blocks + swapped_blocks) * block_size
    whole = cached > 0 and cached >= tokens
    prefill = 1 if whole else tokens - cached
    seconds = work.prefill_seconds(prefill, cached=tokens - prefill)
    if seconds is not None and swapped_blocks:
        seconds = None if swap_seconds is None else seconds + swap_seconds
    return ForkPrice(prefill, int(whole), seconds, swapped_blocks)
