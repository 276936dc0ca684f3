"""The `ModelSpec` of a GGUF file, read from its metadata and tensor table, without the weights."""

import math
from collections.abc import Collection, Mapping

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models.llama3_frequencies import fit_scaling
from engine.models.spec import Architecture, ModelSpec, RopeScaling, RopeStyle

SUPPORTED_DTYPES = frozenset(
    {
        *("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
        *("IQ4_NL", "IQ4_XS", "MXFP4", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    }
)
ROPE_FREQUENCIES = "rope_freqs.weight"
"""Tensor of divisors of the rotary frequencies, [head_dim / 2]: GGUF's form of Llama 3.1's scaling."""

_ARCHITECTURES: dict[str, tuple[Architecture, RopeStyle]] = {
    "llama": ("llama", "interleaved"),  # Mistral GGUF files also name llama
    "qwen2": ("qwen2", "half"),
    "qwen3": ("qwen3", "half"),
}


def read_spec(
    metadata: Mapping[str, object],
    tensors: Mapping[str, tuple[int, ...]],
    *,
    source: str,
    rope_divisors: Collection[float] = (),
) -> ModelSpec:
    """The `ModelSpec` of GGUF metadata.

    Args:
        metadata: the file's key-value pairs.
        tensors: name to shape, slowest-varying dimension first.
        source: names the file in messages.
        rope_divisors: values of the `ROPE_FREQUENCIES` tensor, empty if the file has none.

    Raises:
        ModelError: a field is missing, damaged or not supported.
    """
    general = Fields(metadata, source=source)
    name = general.text("general.architecture")
    if name not in _ARCHITECTURES:
        raise ModelError(
            f"{source} has architecture {name!r}, which the native executor does not "
            f"support (supported: {', '.join(_ARCHITECTURES)})."
        )
    architecture, rope_style = _ARCHITECTURES[name]
    fields = general.under(name)
    if fields.integer("expert_count", default=0) > 0:
        raise ModelError(f"{source} is a mixture of experts, which is not supported.")

    vocab_size, hidden_size = _embedding_shape(tensors, source)
    if fields.integer("embedding_length", low=1) != hidden_size:
        raise fields.wrong("embedding_length", f"{hidden_size}, the width of token_embd.weight")
    num_layers = fields.integer("block_count", low=1, high=4096)
    num_heads = _uniform(fields, "attention.head_count", num_layers)
    num_kv_heads = _uniform(fields, "attention.head_count_kv", num_layers, default=num_heads)
    head_dim = fields.integer(
        "attention.key_length", default=hidden_size // num_heads, low=2, high=1024
    )
    if fields.integer("attention.value_length", default=head_dim) != head_dim:
        raise fields.wrong("attention.value_length", f"{head_dim}, the key length")
    if fields.integer("rope.dimension_count", default=head_dim) != head_dim:
        raise fields.wrong("rope.dimension_count", f"{head_dim}, the head dimension")
    context_length = fields.integer("context_length", low=1, high=1 << 28)
    rope_theta = fields.number("rope.freq_base", default=10_000.0)
    scaling = _rope_scaling(fields, context_length)
    if rope_divisors:
        if scaling.kind != "none":
            raise ModelError(
                f"{source} has two kinds of rotary scaling: rope.scaling.type and {ROPE_FREQUENCIES}."
            )
        scaling = fit_scaling(
            rope_divisors, rope_theta=rope_theta, head_dim=head_dim, source=source
        )
    return ModelSpec(
        architecture=architecture,
        num_layers=num_layers,
        hidden_size=hidden_size,
        intermediate_size=_uniform(fields, "feed_forward_length", num_layers),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        vocab_size=vocab_size,
        context_length=context_length,
        rms_norm_eps=fields.number("attention.layer_norm_rms_epsilon"),
        rope_theta=rope_theta,
        rope_style=rope_style,
        rope_scaling=scaling,
        tied_embeddings="output.weight" not in tensors,
        qkv_bias=_in_every_layer(tensors, "attn_q.bias", num_layers, source),
        output_bias=_in_every_layer(tensors, "attn_output.bias", num_layers, source),
        mlp_bias=_in_every_layer(tensors, "ffn_up.bias", num_layers, source),
        qk_norm=_in_every_layer(tensors, "attn_q_norm.weight", num_layers, source),
        sliding_windows=_sliding_windows(fields, architecture, num_layers, context_length),
    )


def _embedding_shape(tensors: Mapping[str, tuple[int, ...]], source: str) -> tuple[int, int]:
    shape = tensors.get("token_embd.weight")
    if shape is None or len(shape) != 2:
        raise ModelError(
            f"{source} has no token_embd.weight matrix, so it is not a language model."
        )
    return shape[0], shape[1]


def _uniform(fields: Fields, key: str, num_layers: int, default: int | None = None) -> int:
    """A size given once or per layer; all layers must have the same."""
    if not fields.is_list(key):
        return fields.integer(key, default=default, low=1, high=1 << 20)
    values = fields.integers(key)
    if len(values) != num_layers or len(set(values)) != 1 or values[0] < 1:
        raise fields.wrong(key, f"the same positive number for each of {num_layers} layers")
    return values[0]


def _in_every_layer(
    tensors: Mapping[str, tuple[int, ...]], suffix: str, num_layers: int, source: str
) -> bool:
    present = [f"blk.{layer}.{suffix}" in tensors for layer in range(num_layers)]
    if any(present) and not all(present):
        raise ModelError(
            f"{source} has no blk.{present.index(False)}.{suffix}, which other layers have."
        )
    return present[0]


def _rope_scaling(fields: Fields, context_length: int) -> RopeScaling:
    kind = fields.text("rope.scaling.type", default="none")
    match kind:
        case "none":
            factor = fields.number("rope.scale_linear", default=1.0)  # older than scaling.type
            return RopeScaling() if factor == 1.0 else RopeScaling("linear", factor)
        case "linear":
            return RopeScaling("linear", fields.number("rope.scaling.factor"))
        case "yarn":
            factor = fields.number("rope.scaling.factor")
            original = fields.integer(
                "rope.scaling.original_context_length", default=context_length, low=1
            )
            return RopeScaling(
                "yarn",
                factor,
                original,
                beta_fast=fields.number("rope.scaling.yarn_beta_fast", default=32.0),
                beta_slow=fields.number("rope.scaling.yarn_beta_slow", default=1.0),
                attention_factor=_yarn_attention(fields, factor),
            )
        case _:
            raise fields.wrong("rope.scaling.type", "none, linear or yarn")


def _yarn_attention(fields: Fields, factor: float) -> float | None:
    """YaRN's attention factor; None for its default 0.1 ln(factor) + 1, which attn_factor multiplies."""
    if fields.number("rope.scaling.yarn_log_multiplier", default=0.0, positive=False) != 0.0:
        raise fields.wrong("rope.scaling.yarn_log_multiplier", "absent: it is not supported")
    multiplier = fields.number("rope.scaling.attn_factor", default=1.0)
    return None if multiplier == 1.0 else multiplier * (0.1 * math.log(max(factor, 1.0)) + 1.0)


def _sliding_windows(
    fields: Fields, architecture: Architecture, num_layers: int, context_length: int
) -> tuple[int, ...]:
    window = fields.integer("attention.sliding_window", default=0)
    if window == 0 or window >= context_length:
        return (0,) * num_layers
    if architecture != "llama":
        # GGUF does not record which of Qwen's layers use a sliding window.
        raise fields.wrong("attention.sliding_window", "absent for this architecture")
    return (window,) * num_layers
