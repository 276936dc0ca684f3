"""`ForkPrice`: what continuing given tokens would cost now."""

from dataclasses import dataclass


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
