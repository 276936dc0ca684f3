"""What the engine must know of a model that the torch executor runs.

The counterpart of `ModelSpec`: transformers knows the architecture, so only what sizes memory and
bounds requests is here.
"""

from dataclasses import dataclass

from engine.api.config import ComputeDtype


@dataclass(frozen=True, slots=True)
class KvLayer:
    """One layer's keys and values of one token: [num_kv_heads, key_dim] and [.., value_dim]."""

    num_kv_heads: int
    key_dim: int
    value_dim: int

    @property
    def elements(self) -> int:
        """Numbers kept for one token."""
        return self.num_kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class TransformersSpec:
    """A causal language model of any architecture.

    Attributes:
        architecture: transformers' `model_type`.
        kv_layers: one entry a layer; layers may differ.
        compute_dtype: what activations and unquantised weights are kept in.
    """

    architecture: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    context_length: int
    kv_layers: tuple[KvLayer, ...]
    compute_dtype: ComputeDtype

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers the KV cache keeps for one token, in all layers."""
        return sum(layer.elements for layer in self.kv_layers)

    @property
    def kv_vectors_per_token(self) -> int:
        """Keys and values the KV cache keeps for one token, in all layers and heads."""
        return sum(2 * layer.num_kv_heads for layer in self.kv_layers)
