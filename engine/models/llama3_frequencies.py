"""Recovery of Llama 3.1's rotary scaling parameters from the divisor table of a GGUF file.

GGUF stores one divisor per frequency, `RopeScaling` the parameters. The table is recomputed from the
parameters and compared, so a table of another kind is rejected instead of approximated.
"""

import math
from collections.abc import Collection

from engine.api.errors import ModelError
from engine.models.spec import RopeScaling

_ORIGINAL_CONTEXT = 8192  # pre-training context of all Llama 3 models, and the converters' default
_TOLERANCE = 1e-3


def fit_scaling(
    divisors: Collection[float], *, rope_theta: float, head_dim: int, source: str
) -> RopeScaling:
    """The llama3 scaling that gives these divisors; kind `none` if all are 1.

    Args:
        divisors: [head_dim / 2], of the frequencies rope_theta^(-2i / head_dim).
        rope_theta: base of the frequencies.
        head_dim: elements per head.
        source: names the file in messages.

    Raises:
        ModelError: the table is damaged or of another kind.
    """
    if len(divisors) != head_dim // 2 or not all(math.isfinite(d) and d > 0 for d in divisors):
        raise ModelError(f"{source} has a damaged rope_freqs.weight.")
    factor = max(divisors)
    if factor == 1.0:
        return RopeScaling()
    scaling = RopeScaling("llama3", factor, _ORIGINAL_CONTEXT)
    for index, divisor in enumerate(divisors):
        expected = _divisor(scaling, rope_theta ** (-2 * index / head_dim))
        if not math.isclose(divisor, expected, rel_tol=_TOLERANCE):
            raise ModelError(
                f"{source} scales its rotary frequencies by a table that is not Llama 3.1's, "
                "which is not supported."
            )
    return scaling


def _divisor(scaling: RopeScaling, frequency: float) -> float:
    """The divisor of one frequency (radians per token) under llama3 scaling."""
    wavelength = 2 * math.pi / frequency
    if wavelength < scaling.original_context / scaling.high_freq_factor:
        return 1.0
    if wavelength > scaling.original_context / scaling.low_freq_factor:
        return scaling.factor
    smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    return 1 / ((1 - smooth) / scaling.factor + smooth)
