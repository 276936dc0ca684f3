"""Rotary settings of a Hugging Face config.json, in all known spellings.

`rope_scaling` beside `rope_theta` (transformers 4), or both inside `rope_parameters` (transformers 5);
the kind is `rope_type` or, in older files, `type`.
"""

from engine.api.errors import UnsupportedByNativeError
from engine.files.fields import Fields
from engine.models.spec import RopeScaling

_DEFAULT_THETA = 10_000.0


def read_rope(config: Fields, *, context_length: int) -> tuple[float, RopeScaling]:
    """The rotary base (theta) and its scaling.

    Raises:
        UnsupportedByNativeError: the scaling or a partial rotation is not supported.
        ModelError: a field is missing or damaged.
    """
    rope = config.mapping("rope_scaling") or config.mapping("rope_parameters") or Fields.none()
    theta = rope.number("rope_theta", default=config.number("rope_theta", default=_DEFAULT_THETA))
    for holder in (config, rope):
        if holder.number("partial_rotary_factor", default=1.0) != 1.0:
            raise UnsupportedByNativeError(
                str(holder.wrong("partial_rotary_factor", "1: partial rotation is not supported"))
            )
    return theta, _scaling(rope, config, context_length)


def _scaling(rope: Fields, config: Fields, context_length: int) -> RopeScaling:
    key = "rope_type" if "rope_type" in rope else "type"
    kind = rope.text(key, default="default")
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
            for unsupported in ("mscale", "mscale_all_dim"):
                if unsupported in rope:
                    raise UnsupportedByNativeError(
                        str(rope.wrong(unsupported, "absent: it is not supported"))
                    )
            if not rope.flag("truncate", default=True):
                raise UnsupportedByNativeError(str(rope.wrong("truncate", "true")))
            original = _original_context(rope, config, context_length)
            return RopeScaling(
                "yarn",
                rope.number("factor", default=context_length / original),
                original,
                beta_fast=rope.number("beta_fast", default=32.0),
                beta_slow=rope.number("beta_slow", default=1.0),
                attention_factor=(
                    rope.number("attention_factor") if "attention_factor" in rope else None
                ),
            )
        case _:
            raise UnsupportedByNativeError(str(rope.wrong(key, "default, linear, llama3 or yarn")))


def _original_context(rope: Fields, config: Fields, context_length: int) -> int:
    key = "original_max_position_embeddings"
    holder = config if key in config else rope
    return holder.integer(key, default=context_length, low=1)
