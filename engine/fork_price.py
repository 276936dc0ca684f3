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
        copied_blocks: KV blocks to copy, 0 or 1.
        seconds: predicted by the step-time model, for an engine that does nothing else; None while
            it knows nothing of this machine.
    """

    prefill_tokens: int
    copied_blocks: int
    seconds: float | None


def price_of(tokens: int, cached_blocks: int, block_size: int, work: WorkPredictor) -> ForkPrice:
    """The price of `tokens` tokens whose first blocks are cached.

    Args:
        tokens: how many there are.
        cached_blocks: whole blocks found, at most all of them.
        block_size: tokens in a block.
        work: predicts the seconds.
    """
    whole = cached_blocks > 0 and cached_blocks * block_size >= tokens
    prefill = 1 if whole else tokens - cached_blocks * block_size
    return ForkPrice(prefill, int(whole), work.prefill_seconds(prefill, cached=tokens - prefill))
