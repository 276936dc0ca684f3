"""Qwen3-Next: the layers of Qwen3.5, whose gated DeltaNets are stored by key head, and experts."""

from engine.api.errors import ModelError
from engine.models.families.checkpoint_header import CheckpointHeader, plus_one
from engine.models.families.expert_tensors import gguf_experts, sparse_layers
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import ModelHeader
from engine.models.families.qwen35 import checkpoint_mixers, gguf_mixers
from engine.models.families.qwen35moe import checkpoint_ffn, shared_experts
from engine.models.families.role_names import MLP, TOP
from engine.models.spec import (
    GatedDeltaNet,
    LayerSpec,
    Mlp,
    ModelSpec,
    Routing,
    RowRange,
    TensorRef,
)

_SHARE = 0.25
"""Of each head that is rotated, unless the file says otherwise."""

_CHECKPOINT_NET = {
    "time_step.bias": "linear_attn.dt_bias",
    "rate_log": "linear_attn.A_log",
    "conv": "linear_attn.conv1d.weight",
    "state_norm": "linear_attn.norm.weight",
    "o": "linear_attn.out_proj.weight",
}
_GGUF_NET = {
    "time_step.bias": "ssm_dt.bias",
    "rate": "ssm_a",
    "conv": "ssm_conv1d.weight",
    "state_norm": "ssm_norm.weight",
    "o": "ssm_out.weight",
}
_GGUF_SPLIT = {"conv_in": "attn_qkv.weight", "z": "attn_gate.weight"}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    routing = Routing("softmax", renormalise=True)
    layers = []
    for index, (mixer, tensors) in enumerate(gguf_mixers(header, _gguf_net, tiled=False)):
        experts, weights = gguf_experts(header, index, routing)
        layers.append(LayerSpec(mixer, experts, {**tensors, **weights}))
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    renormalise = header.text.flag("norm_topk_prob", default=True)
    experts = shared_experts(header, Routing("softmax", renormalise=renormalise))
    sparse, dense = sparse_layers(header), Mlp(header.intermediate_sizes[0], experts.activation)
    layers = []
    for index, (mixer, tensors) in enumerate(checkpoint_mixers(header, _checkpoint_net)):
        if sparse[index]:
            weights = checkpoint_ffn(header, index, experts)
            layers.append(LayerSpec(mixer, experts, {**tensors, **weights}))
        else:
            of_dense = header.layer_tensors(index, MLP)
            layers.append(LayerSpec(mixer, dense, {**tensors, **of_dense}))
    return header.model(
        layers, plus_one(header.model_tensors(TOP)), ropes=(header.rope(share=_SHARE),)
    )


def _gguf_net(header: ModelHeader, prefix: str, net: GatedDeltaNet) -> dict[str, TensorRef]:
    _check_heads(header, net)
    tensors = header.named(prefix, _GGUF_NET)
    tensors |= _beta_and_time_step(header.require(f"{prefix}ssm_ba.weight"), net)
    fused = f"{prefix}ssm_in.weight"
    if fused in header.shapes:  # as files were first written
        return tensors | _inputs(fused, net)
    return tensors | header.named(prefix, _GGUF_SPLIT)


def _checkpoint_net(header: ModelHeader, prefix: str, net: GatedDeltaNet) -> dict[str, TensorRef]:
    _check_heads(header, net)
    return {
        **header.named(prefix, _CHECKPOINT_NET),
        **_inputs(header.require(f"{prefix}linear_attn.in_proj_qkvz.weight"), net),
        **_beta_and_time_step(header.require(f"{prefix}linear_attn.in_proj_ba.weight"), net),
    }


def _check_heads(header: ModelHeader, net: GatedDeltaNet) -> None:
    """Reject heads of which each key does not have equally many, at least one."""
    if net.num_heads % net.num_key_heads:
        raise ModelError(
            f"{header.source} has {net.num_heads} heads with a state, which {net.num_key_heads} keys "
            "cannot share evenly."
        )


def _inputs(name: str, net: GatedDeltaNet) -> dict[str, TensorRef]:
    """A tensor of the query, the key, the values and their gates of each key head in turn."""
    keys, values = net.key_dim, net.num_heads // net.num_key_heads * net.value_dim
    step, width = 2 * (keys + values), net.num_key_heads * net.key_dim
    further = (
        RowRange(width, start=keys, run=keys, step=step),
        RowRange(2 * width, start=2 * keys, run=values, step=step),
    )
    return {
        "conv_in": TensorRef(name, run=keys, step=step, further=further),
        "z": TensorRef(name, start=2 * keys + values, run=values, step=step),
    }


def _beta_and_time_step(name: str, net: GatedDeltaNet) -> dict[str, TensorRef]:
    """A tensor of the betas and the time steps of each key head in turn."""
    each = net.num_heads // net.num_key_heads
    return {
        "beta": TensorRef(name, run=each, step=2 * each),
        "time_step": TensorRef(name, start=each, run=each, step=2 * each),
    }


QWEN3_NEXT = Family(
    "qwen3next",
    ("qwen3next",),
    _read_gguf,
    {"qwen3_next": "Qwen3NextForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
