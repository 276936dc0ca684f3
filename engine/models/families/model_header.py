"""`ModelHeader`: sizes and tensor names of a model's files, the same for both file formats."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models.spec import (
    Activation,
    Attention,
    LayerSpec,
    Mlp,
    ModelSpec,
    QueryTemperature,
    Rope,
    Streams,
    TensorRef,
    Tensors,
)

MAX_LAYERS = 4096
MAX_WIDTH = 1 << 20
MAX_HEADS = 1024
MAX_HEAD_DIM = 512
MAX_CONTEXT = 1 << 28
MAX_VOCAB = 1 << 24
_MAX_MULTIPLIER = 1e30
"""The kernels compute in fp32."""


class ModelHeader(ABC):
    """What a family's reader reads.

    Sizes are validated when they are first read, so that nothing is allocated by an unchecked number.

    Attributes:
        family: name of the family, `ModelSpec.architecture`.
        fields: the metadata; keys of the architecture in a GGUF file, of config.json in a checkpoint.
        shapes: shape of every tensor, slowest-varying dimension first.
        window_key: the key in `fields` of the sliding window.
    """

    window_key: ClassVar[str]

    def __init__(
        self, family: str, fields: Fields, shapes: Mapping[str, tuple[int, ...]], *, source: str
    ) -> None:
        """`source` names the file in messages."""
        self.family = family
        self.fields = fields
        self.shapes = shapes
        self.source = source

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Rows of the embedding matrix."""

    @property
    @abstractmethod
    def hidden_size(self) -> int:
        """Width of the residual stream."""

    @property
    @abstractmethod
    def num_layers(self) -> int:
        """Number of layers."""

    @property
    @abstractmethod
    def context_length(self) -> int:
        """Tokens of the longest sequence."""

    @property
    @abstractmethod
    def num_heads(self) -> tuple[int, ...]:
        """Query heads of each layer."""

    @property
    @abstractmethod
    def num_kv_heads(self) -> tuple[int, ...]:
        """Heads of keys and values of each layer."""

    @property
    @abstractmethod
    def head_dim(self) -> int:
        """Elements of a head."""

    @property
    @abstractmethod
    def intermediate_sizes(self) -> tuple[int, ...]:
        """Inner width of each layer's feed-forward."""

    @property
    @abstractmethod
    def rms_norm_eps(self) -> float:
        """Epsilon of RMS norms."""

    @property
    @abstractmethod
    def layer_norm_eps(self) -> float:
        """Epsilon of LayerNorm."""

    @abstractmethod
    def layer_tensors(self, index: int, names: Mapping[str, str]) -> Tensors:
        """The weights of a layer.

        Args:
            index: the layer.
            names: role to name in a checkpoint, without what comes before it; a GGUF file has a name of its
                own for each role.

        Raises:
            ModelError: the file has no tensor for one of the roles.
        """

    @abstractmethod
    def model_tensors(self, names: Mapping[str, str]) -> Tensors:
        """The weights outside the layers, as `layer_tensors`; `lm_head` only if it is not tied."""

    def window(self, default: int = 0) -> int:
        """The sliding window, 0 for none; `default` where the file does not say."""
        return self.fields.integer(self.window_key, default=default)

    def attentions(
        self,
        *,
        windows: Sequence[int] | None = None,
        ropes: Sequence[int | None] | None = None,
        scale: float | None = None,
        softcap: float = 0.0,
        qk_norm_whole: bool = False,
        temperature: QueryTemperature | None = None,
    ) -> tuple[Attention, ...]:
        """One attention per layer.

        Args:
            windows: of each layer; None for no windows.
            ropes: the rotary embedding of each layer; None for the first one everywhere.
            scale: of scores; None for 1 / sqrt(head_dim).
            softcap, qk_norm_whole, temperature: of all layers, see `Attention`.
        """
        count = self.num_layers
        return tuple(
            replace(
                self.attention(heads, kv_heads, rope=rope, window=window, scale=scale),
                softcap=softcap,
                qk_norm_whole=qk_norm_whole,
                temperature=temperature,
            )
            for heads, kv_heads, window, rope in zip(
                self.num_heads,
                self.num_kv_heads,
                (0,) * count if windows is None else windows,
                (0,) * count if ropes is None else ropes,
                strict=True,
            )
        )

    def attention(
        self,
        heads: int,
        kv_heads: int,
        *,
        rope: int | None = 0,
        window: int = 0,
        scale: float | None = None,
    ) -> Attention:
        """The attention of one layer; `scale` None is 1 / sqrt(head_dim)."""
        dim = self.head_dim
        return Attention(
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=dim,
            scale=dim**-0.5 if scale is None else scale,
            rope=rope,
            window=0 if window >= self.context_length else window,
        )

    def mlp_layers(
        self,
        attentions: Sequence[Attention],
        tensors: Sequence[Tensors],
        *,
        activation: Activation = "silu",
    ) -> list[LayerSpec]:
        """Layers that are an attention and an MLP, with the weights of each."""
        return [
            LayerSpec(attention, Mlp(intermediate_size, activation), weights)
            for attention, intermediate_size, weights in zip(
                attentions, self.intermediate_sizes, tensors, strict=True
            )
        ]

    def model(
        self,
        layers: Sequence[LayerSpec],
        tensors: Tensors,
        *,
        ropes: tuple[Rope, ...],
        layer_norm: bool = False,
        embedding_multiplier: float = 1.0,
        residual_multiplier: float = 1.0,
        logit_multiplier: float = 1.0,
        logit_softcap: float = 0.0,
        per_layer_width: int = 0,
        streams: Streams | None = None,
        laurel_rank: int = 0,
    ) -> ModelSpec:
        """The description of a model of these layers.

        Raises:
            ModelError: a multiplier is not a number above zero.
        """
        multipliers = (embedding_multiplier, residual_multiplier, logit_multiplier)
        scales = [layer.mixer.scale for layer in layers if isinstance(layer.mixer, Attention)]
        if not all(0 < value < _MAX_MULTIPLIER for value in (*multipliers, *scales)):
            raise ModelError(f"{self.source} has a multiplier that is not a number above zero.")
        if not 0 <= logit_softcap < _MAX_MULTIPLIER:
            raise ModelError(f"{self.source} has a soft-cap of logits below zero.")
        return ModelSpec(
            architecture=self.family,
            hidden_size=self.hidden_size,
            vocab_size=self.vocab_size,
            context_length=self.context_length,
            norm="layer" if layer_norm else "rms",
            norm_eps=self.layer_norm_eps if layer_norm else self.rms_norm_eps,
            ropes=ropes,
            layers=tuple(layers),
            tensors=tensors,
            embedding_multiplier=embedding_multiplier,
            residual_multiplier=residual_multiplier,
            logit_multiplier=logit_multiplier,
            logit_softcap=logit_softcap,
            per_layer_width=per_layer_width,
            streams=streams,
            laurel_rank=laurel_rank,
        )

    def all_layer_tensors(self, names: Mapping[str, str]) -> list[Tensors]:
        """`layer_tensors` of every layer, all with the same roles."""
        return [self.layer_tensors(index, names) for index in range(self.num_layers)]

    def require(self, name: str) -> str:
        """`name`, if the file has a tensor of this name; `ModelError` otherwise."""
        if name not in self.shapes:
            raise ModelError(f"{self.source} has no {name[:120]}.")
        return name

    def width_of(self, name: str) -> int:
        """Rows of a matrix of the file: the inner width of a feed-forward.

        Raises:
            ModelError: it is no matrix, or has an impossible number of rows.
        """
        shape = self.shapes[name]
        if len(shape) != 2 or not 1 <= shape[0] <= MAX_WIDTH:
            raise ModelError(f"{self.source} has a damaged {name[:120]}.")
        return shape[0]

    def named(self, prefix: str, names: Mapping[str, str]) -> dict[str, TensorRef]:
        """Whole tensors by role; `names` are without `prefix`.

        Raises:
            ModelError: the file has no tensor of one of the names.
        """
        return {role: TensorRef(self.require(prefix + name)) for role, name in names.items()}


def split_rows(
    name: str, parts: Mapping[str, int], *, transposed: bool = False
) -> dict[str, TensorRef]:
    """Roles whose weights are stored one after another in the rows of one tensor.

    Args:
        name: the tensor.
        parts: role to number of rows, in the order of the tensor.
        transposed: see `TensorRef`.
    """
    refs, start = {}, 0
    for role, rows in parts.items():
        refs[role] = TensorRef(name, start, run=rows, step=rows, transposed=transposed)
        start += rows
    return refs


def qkv_rows(attention: Attention) -> dict[str, int]:
    """Rows of q, k and v where they are stored one after another."""
    keys = attention.num_kv_heads * attention.head_dim
    return {"q": attention.num_heads * attention.head_dim, "k": keys, "v": keys}


def gate_up(name: str, width: int) -> dict[str, TensorRef]:
    """The gate and the other projection of a feed-forward that are stored in one tensor, the gate first."""
    return split_rows(name, {"gate": width, "up": width})
