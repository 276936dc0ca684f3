"""`ForkPrice`: the predicted cost of a request that continues given tokens."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForkPrice:
    """The cost of a request up to its first new token, with the cache as it is now.

    An estimate: blocks may be evicted or cached before the request is submitted. A fork of a running
    request may cost less, because the block that the parent is writing is not in the cache.

    Attributes:
        prefill_tokens: tokens to compute; at least one.
        copied_blocks: KV blocks to copy inside the pool, 0 or 1.
        swapped_blocks: KV blocks to copy in from the swap tier.
        seconds: predicted by the step-time model for an otherwise idle engine; None until the model
            is calibrated.
        restored_bytes: bytes of recurrent state to copy; 0 for a model without recurrent layers, and if
            everything is computed.
    """

    prefill_tokens: int
    copied_blocks: int
    seconds: float | None
    swapped_blocks: int = 0
    restored_bytes: int = 0
