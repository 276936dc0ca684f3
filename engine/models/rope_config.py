"""Rotary settings of a Hugging Face config.json, in all known spellings.

`rope_scaling` beside `rope_theta` (transformers 4), or both inside `rope_parameters` (transformers 5), there
also per kind of layer; the kind of scaling is `rope_type` or, in older files, `type`.
"""

import math

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.files.fields import Fields
from engine.models.spec import Rope, RopeScaling

_LAYER_KINDS = ("full_attention", "sliding_attention")
_MAX_PAIRS = 1 << 12


def has_kinds(config: Fields) -> bool:
    """Whether the rotary settings are given per kind of layer."""
    rope = _parameters(config)
    return any(rope.is_mapping(kind) for kind in _LAYER_KINDS)


def rope_parameters(config: Fields, kind: str | None = None) -> Fields:
    """The rotary settings of the layers of a kind, or of all; empty if the file has none."""
    rope = _parameters(config)
    if kind is not None and has_kinds(config):
        return rope.mapping(kind) or Fields.none()
    return rope


def read_rope(
    config: Fields,
    rope: Fields,
    *,
    head_dim: int,
    context_length: int,
    theta: float = 10_000.0,
    share: float = 1.0,
    longrope: tuple[str, ...] = (),
) -> Rope:
    """A rotary embedding.

    Args:
        config: the config.json, where older files have some of the settings.
        rope: its `rope_parameters`, see there.
        head_dim: elements of a head.
        context_length: tokens of the longest sequence.
        theta: base if the file gives none.
        share: share of a head that is rotated, if the file gives none.
        longrope: further names of LongRoPE in the files of a family.

    Raises:
        UnsupportedByNativeError: the scaling is not supported.
        ModelError: a field is missing or damaged.
    """
    theta = rope.number("rope_theta", default=config.number("rope_theta", default=theta))
    holder = rope if "partial_rotary_factor" in rope else config
    share = holder.number("partial_rotary_factor", default=share)
    if share > 1:
        raise holder.wrong("partial_rotary_factor", "a number up to 1")
    kind = _kind(rope)
    if kind in longrope:
        kind = "longrope"
    if kind == "proportional":
        pairs = int(share * head_dim // 2)
        factor = rope.number("factor", default=1.0)
        scaling = RopeScaling() if factor == 1.0 else RopeScaling("linear", factor)
        return Rope(theta, head_dim, "half", scaling, None if pairs == head_dim // 2 else pairs)
    dim = int(head_dim * share)
    if dim < 2 or dim % 2:
        raise holder.wrong("partial_rotary_factor", f"a share of {head_dim} that is an even number")
    return Rope(theta, dim, "half", _scaling(rope, kind, config, context_length, dim // 2))


def _parameters(config: Fields) -> Fields:
    return config.mapping("rope_scaling") or config.mapping("rope_parameters") or Fields.none()


def _kind(rope: Fields) -> str:
    return rope.text("rope_type" if "rope_type" in rope else "type", default="default")


def _scaling(
    rope: Fields, kind: str, config: Fields, context_length: int, pairs: int
) -> RopeScaling:
    match kind:
        case "default":
            return RopeScaling()
        case "linear":
            return RopeScaling("linear", rope.number("factor"))
        case "llama3":
            return RopeScaling(
                "llama3",
                rope.number("factor"),
                _original_context(rope, config, context_length),
                low_freq_factor=rope.number("low_freq_factor"),
                high_freq_factor=rope.number("high_freq_factor"),
            )
        case "yarn":
            original = _original_context(rope, config, context_length)
            factor = rope.number("factor", default=context_length / original)
            return RopeScaling(
                "yarn",
                factor,
                original,
                beta_fast=rope.number("beta_fast", default=32.0),
                beta_slow=rope.number("beta_slow", default=1.0),
                truncate=rope.flag("truncate", default=True),
                attention_factor=_yarn_attention(rope, factor),
            )
        case "longrope":
            original = _original_context(rope, config, context_length)
            return RopeScaling(
                "longrope",
                rope.number("factor", default=context_length / original),
                original,
                attention_factor=_given(rope, "attention_factor"),
                short_divisors=_divisors(rope, "short_factor", pairs),
                long_divisors=_divisors(rope, "long_factor", pairs),
            )
        case _:
            key = "rope_type" if "rope_type" in rope else "type"
            raise UnsupportedByNativeError(
                str(rope.wrong(key, "default, linear, llama3, yarn or longrope"))
            )


def _yarn_attention(rope: Fields, factor: float) -> float | None:
    """YaRN's attention factor; None for its default, 0.1 ln(factor) + 1."""
    if "attention_factor" in rope:
        return rope.number("attention_factor")
    scales = [rope.number(key, default=0.0, positive=False) for key in ("mscale", "mscale_all_dim")]
    if not all(scales):
        return None
    growth = 0.1 * math.log(max(factor, 1.0))
    above, below = (growth * scale + 1.0 for scale in scales)
    if not (0 < above < math.inf and 0 < below < math.inf):
        raise ModelError(f"{rope.source}: mscale and mscale_all_dim must be above zero.")
    return above / below


def _divisors(rope: Fields, key: str, pairs: int) -> tuple[float, ...]:
    values = rope.numbers(key)
    if len(values) != pairs or pairs > _MAX_PAIRS or not all(value > 0 for value in values):
        raise rope.wrong(key, f"{pairs} numbers above zero")
    return tuple(float(value) for value in values)


def _given(rope: Fields, key: str) -> float | None:
    return rope.number(key) if key in rope else None


def _original_context(rope: Fields, config: Fields, context_length: int) -> int:
    key = "original_max_position_embeddings"
    holder = config if key in config else rope
    return holder.integer(key, default=context_length, low=1)
