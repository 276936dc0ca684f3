"""`describe_layers`: the layers of a model in groups, in a line for people."""

from collections import Counter
from collections.abc import Iterable

from engine.models.spec import (
    Attention,
    Experts,
    GatedDeltaNet,
    LayerSpec,
    Mamba2,
    Mlp,
    ModelSpec,
    ShortConv,
)

_ACTIVATIONS = {
    "silu": "SiLU",
    "gelu_tanh": "GELU",
    "gelu": "GELU",
    "relu2": "squared ReLU",
    "swiglu_clamped": "clamped SwiGLU",
}


def describe_layers(spec: ModelSpec) -> str:
    """For example "18 layers: 15 with a window of 512, 3 with all tokens; with 4 heads of 256; …"."""
    attentions = spec.attentions
    parts = [_counted(map(_mixer, spec.layers)), _counted(map(_heads, attentions))]
    without = sum(attention.rope is None for attention in attentions)
    if "position_embedding" in spec.tensors:
        parts.append("learned positions")
    elif without:
        parts.append(f"{without} without a rotary embedding")
    shared = sum(attention.kv_layer is not None for attention in attentions)
    if shared:
        parts.append(f"{shared} read the keys of earlier ones")
    parts.append(_counted(_feed_forward(layer) for layer in spec.layers))
    if spec.per_layer_width:
        parts.append(f"embeddings of {spec.per_layer_width} per layer")
    if spec.laurel_rank:
        parts.append(f"products of rank {spec.laurel_rank} beside the mixers")
    if spec.streams is not None:
        parts.append(f"{spec.streams.count} residual streams")
    return f"{spec.num_layers} layers: {'; '.join(part for part in parts if part)}"


def _counted(descriptions: Iterable[str]) -> str:
    """The descriptions with their number, without it if they are all the same."""
    counts = Counter(text for text in descriptions if text)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {text}" for text, count in counts.items())


def _mixer(layer: LayerSpec) -> str:
    match layer.mixer:
        case None:
            return "of a feed-forward alone"
        case Attention() as mixer:
            return _reach(mixer)
        case ShortConv() as mixer:
            return f"short convolution of {mixer.kernel} tokens"
        case GatedDeltaNet() as mixer:
            states = f"{mixer.num_heads} states of {mixer.key_dim} × {mixer.value_dim}"
            return f"gated DeltaNet with {states}"
        case Mamba2() as mixer:
            return f"Mamba2 with {mixer.num_heads} states of {mixer.state_dim} × {mixer.head_dim}"


def _reach(attention: Attention) -> str:
    return f"with a window of {attention.window:,}" if attention.window else "with all tokens"


def _heads(attention: Attention) -> str:
    heads = f"{attention.num_heads} heads of {attention.head_dim}"
    if attention.num_kv_heads == attention.num_heads:
        return f"with {heads}"
    return f"with {heads} and {attention.num_kv_heads} for keys and values"


def _feed_forward(layer: LayerSpec) -> str:
    if isinstance(experts := layer.ffn, Experts):
        kind = "gated" if "experts.gate" in layer.tensors else "plain"
        text = f"{experts.used} of {experts.count} experts of {experts.intermediate_size:,} "
        text += f"({_ACTIVATIONS[experts.activation]}, {kind})"
        if experts.shared is not None:
            text += f" and one of {experts.shared.intermediate_size:,} for all tokens"
        return text
    if not isinstance(layer.ffn, Mlp):
        return ""
    kind = "gated" if "gate" in layer.tensors else "plain"
    kind = kind if layer.ffn.cutoff is None else f"{kind}, sparse"
    return f"feed-forward {layer.ffn.intermediate_size:,} ({_ACTIVATIONS[layer.ffn.activation]}, {kind})"
