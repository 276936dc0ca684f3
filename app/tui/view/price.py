"""Prices of forks and regenerated answers as text."""

from app.tui.numbers import duration, size
from engine.api.fork_price import ForkPrice

_SHOWN_FROM_S = 0.05
"""A shorter prediction is left out: nobody waits for it."""


def build_price(price: ForkPrice) -> str:
    """`1 tok+1 blk`, `1 812 tok ≈ 412 ms`: tokens to compute, what is copied, seconds if noticeable."""
    text = f"{spaced(price.prefill_tokens)} tok"
    if price.copied_blocks:
        text += f"+{price.copied_blocks} blk"
    if price.swapped_blocks:
        text += f"+{price.swapped_blocks} blk swapped in"
    if price.restored_bytes:
        text += f"+{size(price.restored_bytes)} state"
    if price.seconds is not None and price.seconds >= _SHOWN_FROM_S:
        text += f" ≈ {duration(price.seconds)}"
    return text


def build_paid(operation: str, n_prompt: int, n_cached: int) -> str:
    """What a request has cost, such as `Fork: 12 of 252 prompt tokens computed, …`."""
    computed = spaced(n_prompt - n_cached)
    return (
        f"{operation}: {computed} of {spaced(n_prompt)} prompt tokens computed, "
        f"{spaced(n_cached)} from the cache."
    )


def spaced(count: int) -> str:
    """A count with spaces between thousands."""
    return f"{count:,}".replace(",", " ")
