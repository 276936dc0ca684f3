"""`TransformersSpec`: the counterpart of `ModelSpec` for the torch executor.

transformers implements the architecture, so only the sizes that determine memory use and request limits
are needed.
"""

from dataclasses import dataclass

from engine.api.config import ComputeDtype


@dataclass(frozen=True, slots=True)
class KvLayer:
    """Shapes of a token's key and value in one layer: [num_kv_heads, key_dim], [num_kv_heads, value_dim]."""

    num_kv_heads: int
    key_dim: int
    value_dim: int

    @property
    def elements(self) -> int:
        """Elements per token."""
        return self.num_kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class TransformersSpec:
    """A causal language model of any architecture; of one with a vision tower, its text part.

    Attributes:
        architecture: transformers' `model_type`.
        kv_layers: one entry per layer; layers may differ.
        compute_dtype: dtype of activations and of weights that are not quantised.
        sees_images: whether it is run with its vision tower.
    """

    architecture: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    context_length: int
    kv_layers: tuple[KvLayer, ...]
    compute_dtype: ComputeDtype
    sees_images: bool = False

    @property
    def kv_elements_per_token(self) -> int:
        """Elements in the KV cache per token, over all layers."""
        return sum(layer.elements for layer in self.kv_layers)
