"""`OnnxSpec`: the counterpart of `ModelSpec` for the ONNX executor, and `GraphPorts`, the names in its graph.

The graph implements the architecture, so only sizes and names are needed.
"""

from dataclasses import dataclass
from typing import Literal

from engine.models.transformers_spec import KvLayer

OnnxKvDtype = Literal["f16", "f32"]


@dataclass(frozen=True, slots=True)
class Port:
    """An integer input of the graph.

    Attributes:
        name: its name.
        bits: of its elements, 32 or 64.
        rank: number of its dimensions.
    """

    name: str
    bits: int
    rank: int


@dataclass(frozen=True, slots=True)
class GraphPorts:
    """Inputs and outputs of a decoder's graph, by their role.

    Attributes:
        input_ids: token ids, [batch, new].
        attention_mask: 1 for tokens that are attended to, [batch, past + new]; None if there is none.
        position_ids: positions, [batch, new]; None if the graph computes them.
        logits_to_keep: number of last positions whose logits are wanted, 0 for all; None if there is none.
        uses_past: name of a boolean of graphs that were merged of two, with and without past; or None.
        past_keys, past_values: per layer, [batch, KV heads, past, size].
        logits: [batch, new or 1, vocabulary].
        present_keys, present_values: per layer, past and new tokens together.
    """

    input_ids: Port
    attention_mask: Port | None
    position_ids: Port | None
    logits_to_keep: Port | None
    uses_past: str | None
    past_keys: tuple[str, ...]
    past_values: tuple[str, ...]
    logits: str
    present_keys: tuple[str, ...]
    present_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnnxSpec:
    """A causal language model whose graph keeps keys and values.

    Attributes:
        architecture: the family's name in its configuration.
        hidden_size: 0 if the configuration does not state it.
        kv_layers: one entry per pair of past inputs; layers may differ.
        kv_dtype: element type of keys and values.
        is_single: whether the graph takes one sequence at a time.
        ports: names of inputs and outputs.
    """

    architecture: str
    hidden_size: int
    vocab_size: int
    context_length: int
    kv_layers: tuple[KvLayer, ...]
    kv_dtype: OnnxKvDtype
    is_single: bool
    ports: GraphPorts

    @property
    def num_layers(self) -> int:
        """Number of layers that keep keys and values."""
        return len(self.kv_layers)

    @property
    def kv_elements_per_token(self) -> int:
        """Elements in the KV cache per token, over all layers."""
        return sum(layer.elements for layer in self.kv_layers)
