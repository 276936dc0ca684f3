"""Counter-based Gumbel noise: `engine.executors.reference_sampler.gumbel_noise` in torch.

torch lacks full unsigned 64-bit arithmetic. Signed multiplication and addition wrap to the same bits;
only the right shift differs, so its sign bits are masked off.
"""

import torch

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_MIX_1 = 0xBF58476D1CE4E5B9 - 2**64
_MIX_2 = 0x94D049BB133111EB - 2**64


def _shift_right(value: torch.Tensor, bits: int) -> torch.Tensor:
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix64(value: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64 (Steele et al. 2014), elementwise, on the bits of int64."""
    value = (value ^ _shift_right(value, 30)) * _MIX_1
    value = (value ^ _shift_right(value, 27)) * _MIX_2
    return value ^ _shift_right(value, 31)


def gumbel_noise(seeds: torch.Tensor, positions: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Standard Gumbel noise of every token.

    Args:
        seeds: [N] int64, the bits of the requests' seeds.
        positions: [N] int64, positions of the tokens to be sampled.
        vocab_size: number of token ids.

    Returns:
        [N, vocab_size] float64.
    """
    row_keys = mix64(seeds ^ mix64(positions))
    tokens = torch.arange(vocab_size, device=seeds.device) * _GOLDEN
    bits = _shift_right(mix64(row_keys[:, None] ^ tokens[None, :]), 40)
    uniform = (bits.double() + 0.5) / 2.0**24  # never 0 or 1
    return -torch.log(-torch.log(uniform))
