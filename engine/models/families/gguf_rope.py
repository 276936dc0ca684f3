"""Rotary settings of a GGUF file."""

import math
from collections.abc import Mapping, Sequence

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models.spec import Rope, RopeScaling, RopeStyle

DIVISORS = "rope_freqs.weight"
SHORT_DIVISORS = "rope_factors_short.weight"
LONG_DIVISORS = "rope_factors_long.weight"
ROPE_TABLES = (DIVISORS, SHORT_DIVISORS, LONG_DIVISORS)
"""Tensors of divisors of the rotary frequencies, one per pair: Llama 3.1's scaling or the pairs that Gemma 4
does not rotate; and LongRoPE's."""

_NOT_ROTATED = 1e20
"""Divisors from here on stand for pairs that are not rotated; converters write 1e30."""


def read_rope(
    fields: Fields,
    tables: Mapping[str, Sequence[float]],
    *,
    style: RopeStyle,
    head_dim: int,
    context_length: int,
    local: bool,
    default_theta: float | None,
) -> Rope:
    """The rotary embedding of all layers, or of some.

    Args:
        fields: the keys of the architecture.
        tables: values of the tensors in `ROPE_TABLES` that the file has.
        style: order of the rows of q and k.
        head_dim: elements of a head.
        context_length: tokens of the longest sequence.
        local: the embedding of layers with a window, where it differs from that of the others: it is not
            scaled.
        default_theta: base if the file gives none; None for that of the other layers.

    Raises:
        ModelError: a field or table is missing, damaged or not supported.
    """
    theta = fields.number("rope.freq_base", default=10_000.0)
    dim_key = "rope.dimension_count"
    if local:
        theta = fields.number(
            "rope.freq_base_swa", default=theta if default_theta is None else default_theta
        )
        dim_key = "rope.dimension_count_swa" if "rope.dimension_count_swa" in fields else dim_key
    dim = fields.integer(dim_key, default=head_dim)
    if not 2 <= dim <= head_dim or dim % 2:
        raise fields.wrong(dim_key, f"an even number from 2 to {head_dim}, the head dimension")
    if local:
        return Rope(theta, dim, style)
    for name, values in tables.items():
        if len(values) != dim // 2 or not all(math.isfinite(v) and v > 0 for v in values):
            raise ModelError(f"{fields.source} has a damaged {name}.")
    scaling = _scaling(fields, tables, context_length)
    divisors = tuple(tables.get(DIVISORS, ()))
    if divisors and scaling.kind != "none":
        raise ModelError(
            f"{fields.source} has two kinds of rotary scaling: rope.scaling.type and {DIVISORS}."
        )
    pairs = sum(divisor < _NOT_ROTATED for divisor in divisors)
    if all(divisor == 1.0 for divisor in divisors[:pairs]):
        rotated: tuple[float, ...] = ()
    else:
        rotated = divisors[:pairs]
    if any(divisor >= _NOT_ROTATED for divisor in divisors[:pairs]):
        raise ModelError(f"{fields.source} has a damaged {DIVISORS}.")
    return Rope(
        theta, dim, style, scaling, pairs if divisors and pairs < dim // 2 else None, rotated
    )


def _scaling(
    fields: Fields, tables: Mapping[str, Sequence[float]], context_length: int
) -> RopeScaling:
    """The scaling that the file names. Files of Phi-3 have LongRoPE's tables and name no type."""
    original_key = "rope.scaling.original_context_length"
    default = "none"
    if SHORT_DIVISORS in tables and LONG_DIVISORS in tables:
        default = "longrope"
    elif "rope.scaling.factor" in fields or "rope.scale_linear" in fields:
        default = "linear"  # older than scaling.type
    match fields.text("rope.scaling.type", default=default):
        case "none":
            return RopeScaling()
        case "linear":
            old = "rope.scale_linear" in fields and "rope.scaling.factor" not in fields
            factor = fields.number("rope.scale_linear" if old else "rope.scaling.factor")
            return RopeScaling() if factor == 1.0 else RopeScaling("linear", factor)
        case "yarn":
            factor = fields.number("rope.scaling.factor")
            return RopeScaling(
                "yarn",
                factor,
                fields.integer(original_key, default=context_length, low=1),
                beta_fast=fields.number("rope.scaling.yarn_beta_fast", default=32.0),
                beta_slow=fields.number("rope.scaling.yarn_beta_slow", default=1.0),
                attention_factor=_yarn_attention(fields, factor),
            )
        case "longrope":
            for name in (SHORT_DIVISORS, LONG_DIVISORS):
                if name not in tables:
                    raise ModelError(f"{fields.source} has no {name}.")
            original = fields.integer(original_key, default=context_length, low=1)
            return RopeScaling(
                "longrope",
                max(context_length / original, 1.0),
                original,
                attention_factor=fields.number("rope.scaling.attn_factor", default=1.0),
                short_divisors=tuple(tables[SHORT_DIVISORS]),
                long_divisors=tuple(tables[LONG_DIVISORS]),
            )
        case _:
            raise fields.wrong("rope.scaling.type", "none, linear, yarn or longrope")


def _yarn_attention(fields: Fields, scale: float) -> float | None:
    """YaRN's attention factor; None for its default, 0.1 ln(factor) + 1, which attn_factor multiplies."""
    if "rope.scaling.yarn_attn_factor" in fields:
        return fields.number("rope.scaling.yarn_attn_factor")
    multiplier = fields.number("rope.scaling.attn_factor", default=1.0)
    log_multiplier = fields.number("rope.scaling.yarn_log_multiplier", default=0.0, positive=False)
    if multiplier == 1.0 and log_multiplier == 0.0:
        return None
    growth = 0.1 * math.log(max(scale, 1.0))
    if log_multiplier < 0:
        raise fields.wrong("rope.scaling.yarn_log_multiplier", "0 or above")
    factor = multiplier * (growth + 1.0) / (growth * log_multiplier + 1.0)
    if not 0 < factor < math.inf:
        raise fields.wrong("rope.scaling.attn_factor", "a number above zero")
    return factor
