"""`CheckpointHeader`: config.json and tensor table of a checkpoint of transformers."""

from collections.abc import Mapping
from functools import cached_property

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.files.fields import Fields
from engine.models.families.model_header import (
    MAX_CONTEXT,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_VOCAB,
    MAX_WIDTH,
    ModelHeader,
)
from engine.models.rope_config import has_kinds, read_rope, rope_parameters
from engine.models.spec import Activation, Rope, TensorRef, Tensors

_ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu2": "relu2",
}
_TEXT_PREFIXES = ("model.language_model.", "language_model.model.")
"""What comes before the names of a language model inside a model that also sees images."""

_HEADS = ("lm_head.weight", "language_model.lm_head.weight")
_KINDS = ("full_attention", "sliding_attention")


class CheckpointHeader(ModelHeader):
    """A checkpoint: its sizes, the names of its tensors, its rotary embeddings.

    Attributes:
        text: the part of config.json that describes the language model.
    """

    window_key = "sliding_window"

    def __init__(
        self,
        family: str,
        config: Fields,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        text: Fields | None = None,
    ) -> None:
        """`config` is the whole config.json; `text` replaces its part of the language model."""
        self.text = text or config.mapping("text_config") or config
        super().__init__(family, self.text, shapes, source=config.source)
        self._whole = config

    def with_defaults(self, defaults: Mapping[str, object]) -> "CheckpointHeader":
        """The same header, with values for keys that its config.json leaves out."""
        return self._with(self.text.filled(defaults))

    def renamed(self, names: Mapping[str, str]) -> "CheckpointHeader":
        """The same header, for a config.json with other keys; `names` is usual key to key in the file."""
        return self._with(self.text.renamed(names))

    def _with(self, text: Fields) -> "CheckpointHeader":
        return CheckpointHeader(self.family, self._whole, self.shapes, text=text)

    @cached_property
    def vocab_size(self) -> int:
        """Rows of the embedding matrix."""
        return self.text.integer("vocab_size", low=1, high=MAX_VOCAB)

    @cached_property
    def hidden_size(self) -> int:
        """Width of the residual stream."""
        return self.text.integer("hidden_size", low=1, high=MAX_WIDTH)

    @cached_property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.text.integer("num_hidden_layers", low=1, high=MAX_LAYERS)

    @cached_property
    def context_length(self) -> int:
        """Tokens of the longest sequence."""
        return self.text.integer("max_position_embeddings", low=1, high=MAX_CONTEXT)

    @cached_property
    def num_heads(self) -> tuple[int, ...]:
        """Query heads of each layer."""
        heads = self.text.integer("num_attention_heads", low=1, high=MAX_HEADS)
        return (heads,) * self.num_layers

    @cached_property
    def num_kv_heads(self) -> tuple[int, ...]:
        """Heads of keys and values of each layer."""
        heads = self.text.integer(
            "num_key_value_heads", default=self.num_heads[0], low=1, high=MAX_HEADS
        )
        return (heads,) * self.num_layers

    @cached_property
    def head_dim(self) -> int:
        """Elements of a head."""
        dim = self.text.integer(
            "head_dim", default=self.hidden_size // self.num_heads[0], low=2, high=MAX_HEAD_DIM
        )
        if not 2 <= dim <= MAX_HEAD_DIM:
            raise self.text.wrong("head_dim", f"an integer from 2 to {MAX_HEAD_DIM}")
        return dim

    @cached_property
    def intermediate_sizes(self) -> tuple[int, ...]:
        """Inner width of each layer's feed-forward."""
        size = self.text.integer("intermediate_size", low=1, high=MAX_WIDTH)
        return (size,) * self.num_layers

    @cached_property
    def rms_norm_eps(self) -> float:
        """Epsilon of RMS norms."""
        return self.text.number("rms_norm_eps")

    @cached_property
    def layer_norm_eps(self) -> float:
        """Epsilon of LayerNorm."""
        return self.text.number("layer_norm_eps")

    def activation(self, key: str = "hidden_act", default: str = "silu") -> Activation:
        """The activation of the feed-forward."""
        found = _ACTIVATIONS.get(self.text.text(key, default=default))
        if found is None:
            raise self.unsupported(key, ", ".join(_ACTIVATIONS))
        return found

    def unsupported(self, key: str, expected: str) -> UnsupportedByNativeError:
        """The error for a setting that the native executor does not support."""
        return UnsupportedByNativeError(str(self.text.wrong(key, expected)))

    def refuse(self, *keys: str) -> None:
        """Reject a model that has one of these settings on."""
        for key in keys:
            if self.text.flag(key, default=False):
                raise self.unsupported(key, "false: it is not supported")

    def names_if(self, key: str, names: dict[str, str], *, default: bool = False) -> dict[str, str]:
        """`names`, such as those of biases, if config.json has `key` on; none otherwise."""
        return names if self.text.flag(key, default=default) else {}

    def sliding_layers(self, period: int) -> tuple[bool, ...]:
        """Which layers have a window: what the file says, by default all but every `period`-th one."""
        count = self.num_layers
        if "layer_types" not in self.text:
            return tuple((i + 1) % period != 0 for i in range(count))
        kinds = self.text.texts("layer_types")
        if len(kinds) != count or not set(_KINDS).issuperset(kinds):
            raise self.text.wrong("layer_types", f"{' or '.join(_KINDS)} for {count} layers")
        return tuple(kind == "sliding_attention" for kind in kinds)

    def rope(
        self,
        *,
        kind: str | None = None,
        head_dim: int | None = None,
        theta: float = 10_000.0,
        share: float = 1.0,
        longrope: tuple[str, ...] = (),
    ) -> Rope:
        """The rotary embedding of all layers or those of a kind; see `read_rope` for the others."""
        return read_rope(
            self.text,
            rope_parameters(self.text, kind),
            head_dim=self.head_dim if head_dim is None else head_dim,
            context_length=self.context_length,
            theta=theta,
            share=share,
            longrope=longrope,
        )

    def local_rope(self, *, theta: float) -> Rope:
        """The rotary embedding of layers with a window, where it differs from that of the others.

        Older files have `rope_theta` and `rope_scaling` for the others alone; `theta` is the base then.
        """
        nested = has_kinds(self.text)
        given = rope_parameters(self.text, "sliding_attention") if nested else Fields.none()
        return read_rope(
            Fields.none(),
            given,
            head_dim=self.head_dim,
            context_length=self.context_length,
            theta=theta,
        )

    def layer_tensors(self, index: int, names: Mapping[str, str]) -> Tensors:
        """The weights of a layer; see `ModelHeader`."""
        prefix = f"{self.prefix}layers.{index}."
        return {role: TensorRef(self.require(prefix + name)) for role, name in names.items()}

    def model_tensors(self, names: Mapping[str, str], *, tied: bool = False) -> Tensors:
        """The weights outside the layers; see `ModelHeader`.

        Args:
            names: role to name, without `lm_head`.
            tied: whether the LM head is the embedding matrix where config.json does not say.
        """
        found = {role: TensorRef(self.require(self.prefix + name)) for role, name in names.items()}
        return found | self.head(tied=tied)

    def head(self, *, tied: bool) -> dict[str, TensorRef]:
        """The LM head; empty if it is the embedding matrix.

        A head in the file is used whatever config.json says, as in transformers: fine-tuning may have untied
        it.
        """
        present = [name for name in _HEADS if name in self.shapes]
        if present:
            return {"lm_head": TensorRef(present[0])}
        key = "tie_word_embeddings"
        holder = self._whole if key in self._whole else self.text
        if holder.flag(key, default=tied):
            return {}
        raise ModelError(
            f"{self.source} does not tie the embeddings, but the weights have no {_HEADS[0]}."
        )

    @cached_property
    def prefix(self) -> str:
        """What comes before the names of the language model's tensors."""
        for prefix in _TEXT_PREFIXES:
            if f"{prefix}embed_tokens.weight" in self.shapes:
                return prefix
        return "model."

    def softcap(self, key: str, default: float) -> float:
        """A soft-cap, 0 for none: null means none, a key that is left out means the default."""
        return self.text.nullable_number(key, default=default) or 0.0


def plus_one(tensors: Tensors) -> dict[str, TensorRef]:
    """The same weights, where norms are stored as their difference to 1 (Gemma's checkpoints)."""
    return {
        role: TensorRef(ref.name, add=1.0) if role.endswith("norm") else ref
        for role, ref in tensors.items()
    }
