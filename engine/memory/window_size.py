"""How many blocks of a sequence a sliding window takes.

A token sees itself and the `window - 1` tokens before it. Attention reads whole *chunks* of tokens, which
begin at multiples of the chunk size, so the keys of all tokens from such a multiple on must be there.
"""

from math import lcm


def first_block(tokens: int, window: int, *, chunk: int, block_size: int) -> int:
    """The first block that a sequence needs to continue after `tokens` tokens, or to repeat the last of them.

    Args:
        tokens: tokens of the sequence so far.
        window: tokens that a token sees, itself included.
        chunk: tokens that attention reads together.
        block_size: tokens in a block.
    """
    return max(0, tokens - window) // chunk * chunk // block_size


def blocks_of_window(window: int, *, chunk: int, block_size: int) -> int:
    """The most blocks that a sequence needs to continue after whole blocks; arguments as of `first_block`."""
    start = -(-window // block_size) * block_size
    ends = range(start, start + lcm(chunk, block_size) + 1, block_size)
    return max(
        end // block_size - first_block(end, window, chunk=chunk, block_size=block_size)
        for end in ends
    )
