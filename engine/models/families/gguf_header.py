"""`GgufHeader`: metadata and tensor table of a GGUF file."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models.families.gguf_rope import read_rope
from engine.models.families.model_header import (
    MAX_CONTEXT,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_VOCAB,
    MAX_WIDTH,
    ModelHeader,
    qkv_rows,
    split_rows,
)
from engine.models.spec import Attention, Rope, RopeStyle, TensorRef, Tensors

_LAYER_NAMES = {
    "mixer_norm": "attn_norm",
    "mixer_post_norm": "post_attention_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "sinks": "attn_sinks",
    "ffn_norm": "ffn_norm",
    "ffn_post_norm": "post_ffw_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "output_scale": "layer_output_scale",
    "per_layer_gate": "inp_gate",
    "per_layer_projection": "proj",
    "per_layer_norm": "post_norm",
}
_MODEL_NAMES = {
    "embedding": "token_embd",
    "position_embedding": "position_embd",
    "final_norm": "output_norm",
    "lm_head": "output",
    "per_layer_embedding": "per_layer_token_embd",
    "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_model_norm": "per_layer_proj_norm",
}
_FUSED = frozenset({"q", "k", "v", "q.bias", "k.bias", "v.bias"})
"""Roles that may be stored one after another in the rows of `attn_qkv`."""


class GgufHeader(ModelHeader):
    """A GGUF file: its sizes, the names of its tensors, its rotary embeddings.

    Attributes:
        rope_tables: values of the tensors in `ROPE_TABLES` of `gguf_rope`, by name.
    """

    window_key = "attention.sliding_window"

    def __init__(
        self,
        family: str,
        fields: Fields,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        source: str,
        rope_tables: Mapping[str, Sequence[float]],
    ) -> None:
        """`fields` are the keys of the architecture, without its name."""
        super().__init__(family, fields, shapes, source=source)
        self.rope_tables = rope_tables

    def with_defaults(self, defaults: Mapping[str, object]) -> "GgufHeader":
        """The same header, with values for keys that the file leaves out."""
        return GgufHeader(
            self.family,
            self.fields.filled(defaults),
            self.shapes,
            source=self.source,
            rope_tables=self.rope_tables,
        )

    @cached_property
    def vocab_size(self) -> int:
        """Rows of the embedding matrix."""
        return self._embedding_shape[0]

    @cached_property
    def hidden_size(self) -> int:
        """Width of the residual stream."""
        width = self._embedding_shape[1]
        if self.fields.integer("embedding_length", low=1, high=MAX_WIDTH) != width:
            raise self.fields.wrong("embedding_length", f"{width}, the width of token_embd.weight")
        return width

    @cached_property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.fields.integer("block_count", low=1, high=MAX_LAYERS)

    @cached_property
    def context_length(self) -> int:
        """Tokens of the longest sequence."""
        return self.fields.integer("context_length", low=1, high=MAX_CONTEXT)

    @cached_property
    def num_heads(self) -> tuple[int, ...]:
        """Query heads of each layer."""
        return self.per_layer("attention.head_count", high=MAX_HEADS)

    @cached_property
    def num_kv_heads(self) -> tuple[int, ...]:
        """Heads of keys and values of each layer."""
        if "attention.head_count_kv" not in self.fields:
            return self.num_heads
        return self.per_layer("attention.head_count_kv", high=MAX_HEADS)

    @cached_property
    def head_dim(self) -> int:
        """Elements of a head."""
        return self.head_dim_of("attention.key_length", "attention.value_length")

    @cached_property
    def intermediate_sizes(self) -> tuple[int, ...]:
        """Inner width of each layer's feed-forward."""
        return self.per_layer("feed_forward_length", high=MAX_WIDTH)

    @cached_property
    def rms_norm_eps(self) -> float:
        """Epsilon of RMS norms."""
        return self.fields.number("attention.layer_norm_rms_epsilon")

    @cached_property
    def layer_norm_eps(self) -> float:
        """Epsilon of LayerNorm."""
        return self.fields.number("attention.layer_norm_epsilon")

    def head_dim_of(self, key: str, value_key: str) -> int:
        """The head dimension that `key` gives, by default that of the heads of the first layer."""
        default = self.hidden_size // self.num_heads[0]
        dim = self.fields.integer(key, default=default, low=2, high=MAX_HEAD_DIM)
        if not 2 <= dim <= MAX_HEAD_DIM:
            raise self.fields.wrong(key, f"an integer from 2 to {MAX_HEAD_DIM}")
        if self.fields.integer(value_key, default=dim) != dim:
            raise self.fields.wrong(value_key, f"{dim}, the key length")
        return dim

    def per_layer(self, key: str, *, high: int, low: int = 1) -> tuple[int, ...]:
        """A size given once, or per layer."""
        count = self.num_layers
        if not self.fields.is_list(key):
            return (self.fields.integer(key, low=low, high=high),) * count
        values = self.fields.integers(key)
        if len(values) != count or not all(low <= value <= high for value in values):
            raise self.fields.wrong(
                key, f"an integer from {low} to {high} for each of {count} layers"
            )
        return tuple(values)

    def sliding_layers(self, period: int) -> tuple[bool, ...]:
        """Which layers have a window: what the file says, by default all but every `period`-th one."""
        key = "attention.sliding_window_pattern"
        if self.fields.is_list(key):
            pattern = self.fields.flags(key)
            if len(pattern) != self.num_layers:
                raise self.fields.wrong(key, f"a value for each of {self.num_layers} layers")
            return tuple(pattern)
        period = self.fields.integer(key, default=period, high=MAX_LAYERS)
        return tuple(period == 0 or (i + 1) % period != 0 for i in range(self.num_layers))

    def rope(
        self,
        style: RopeStyle,
        *,
        head_dim: int | None = None,
        local: bool = False,
        theta: float | None = None,
    ) -> Rope:
        """A rotary embedding of the file.

        Args:
            style: order of the rows of q and k.
            head_dim: elements of the heads that it rotates; None for `head_dim`.
            local: the one of the layers with a window, which is never scaled.
            theta: base unless the file gives one; None for the base of the other layers.
        """
        return read_rope(
            self.fields,
            {} if local else self.rope_tables,
            style=style,
            head_dim=self.head_dim if head_dim is None else head_dim,
            context_length=self.context_length,
            local=local,
            default_theta=theta,
        )

    def layer_tensors(self, index: int, names: Mapping[str, str]) -> Tensors:
        """The weights of a layer; see `ModelHeader`."""
        prefix = f"blk.{index}."
        return {
            role: TensorRef(self.require(prefix + _file_name(role, _LAYER_NAMES))) for role in names
        }

    def model_tensors(self, names: Mapping[str, str]) -> Tensors:
        """The weights outside the layers; see `ModelHeader`."""
        found = {role: TensorRef(self.require(_file_name(role, _MODEL_NAMES))) for role in names}
        if (head := _file_name("lm_head", _MODEL_NAMES)) in self.shapes:
            found["lm_head"] = TensorRef(head)
        return found

    def optional(self, names: Mapping[str, str]) -> dict[str, str]:
        """The roles of `names` that the layers of this file have.

        Raises:
            ModelError: some layers have a role and others do not.
        """
        return {role: name for role, name in names.items() if self._in_every_layer(role)}

    def attention_layers(
        self,
        attentions: Sequence[Attention],
        names: Mapping[str, str],
        optional: Mapping[str, str] | None = None,
    ) -> list[Tensors]:
        """`layer_tensors` of every layer; q, k and v may be stored in one tensor.

        Args:
            attentions: of each layer.
            names: roles that every layer has.
            optional: roles that all layers or none have.
        """
        names = dict(names)
        fused = "blk.0.attn_qkv.weight" in self.shapes and "blk.0.attn_q.weight" not in self.shapes
        biased = fused and ("q.bias" in names or "blk.0.attn_qkv.bias" in self.shapes)
        if fused:
            names = {role: name for role, name in names.items() if role not in _FUSED}
        names |= self.optional({} if optional is None else optional)
        layers: list[Tensors] = []
        for index, attention in enumerate(attentions):
            tensors, rows = dict(self.layer_tensors(index, names)), qkv_rows(attention)
            if fused:
                tensors |= split_rows(self.require(f"blk.{index}.attn_qkv.weight"), rows)
            if biased:
                biases = {f"{role}.bias": count for role, count in rows.items()}
                tensors |= split_rows(self.require(f"blk.{index}.attn_qkv.bias"), biases)
            layers.append(tensors)
        return layers

    @cached_property
    def _embedding_shape(self) -> tuple[int, int]:
        shape = self.shapes.get("token_embd.weight")
        if shape is None or len(shape) != 2 or not (0 < shape[0] <= MAX_VOCAB):
            raise ModelError(
                f"{self.source} has no token_embd.weight matrix, so it is not a language model."
            )
        return shape[0], shape[1]

    def _in_every_layer(self, role: str) -> bool:
        suffix = _file_name(role, _LAYER_NAMES)
        present = [f"blk.{index}.{suffix}" in self.shapes for index in range(self.num_layers)]
        if any(present) and not all(present):
            raise ModelError(
                f"{self.source} has no blk.{present.index(False)}.{suffix}, which other layers have."
            )
        return present[0]


def _file_name(role: str, names: Mapping[str, str]) -> str:
    """The name of a role's tensor, without the number of its layer."""
    weight, _, bias = role.partition(".")
    return f"{names[weight]}.{bias or 'weight'}"
