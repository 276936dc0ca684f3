"""Qwen3.5 to 3.8: gated DeltaNet, and every fourth layer attention with an output gate.

Blocks for multi-token prediction (MTP), which follow the layers, are not read.
"""

from collections.abc import Callable

from engine.models.families.checkpoint_header import CheckpointHeader, plus_one
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.hybrid import MAX_KERNEL, recurrent_layers
from engine.models.families.model_header import (
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_WIDTH,
    ModelHeader,
)
from engine.models.families.role_names import ATTENTION, MLP, NORMS_BEFORE, QK_NORMS, TOP
from engine.models.spec import (
    GatedDeltaNet,
    LayerSpec,
    Mixer,
    Mlp,
    ModelSpec,
    TensorRef,
    Tensors,
)

_INTERVAL = 4
_ATTENTION = {role: ATTENTION[role] for role in ("k", "v", "o")} | QK_NORMS
_CHECKPOINT_NET = {
    "conv_in": "linear_attn.in_proj_qkv.weight",
    "z": "linear_attn.in_proj_z.weight",
    "beta": "linear_attn.in_proj_b.weight",
    "time_step": "linear_attn.in_proj_a.weight",
    "time_step.bias": "linear_attn.dt_bias",
    "rate_log": "linear_attn.A_log",
    "conv": "linear_attn.conv1d.weight",
    "state_norm": "linear_attn.norm.weight",
    "o": "linear_attn.out_proj.weight",
}
_GGUF_NET = {
    "conv_in": "attn_qkv.weight",
    "z": "attn_gate.weight",
    "beta": "ssm_beta.weight",
    "time_step": "ssm_alpha.weight",
    "time_step.bias": "ssm_dt.bias",
    "rate": "ssm_a",
    "conv": "ssm_conv1d.weight",
    "state_norm": "ssm_norm.weight",
    "o": "ssm_out.weight",
}


NetReader = Callable[[ModelHeader, str, GatedDeltaNet], dict[str, TensorRef]]
"""The weights of a gated DeltaNet, by what comes before the names of its layer."""


def _gguf_net(header: ModelHeader, prefix: str, _: GatedDeltaNet) -> dict[str, TensorRef]:
    return header.named(prefix, _GGUF_NET)


def _checkpoint_net(header: ModelHeader, prefix: str, _: GatedDeltaNet) -> dict[str, TensorRef]:
    return header.named(prefix, _CHECKPOINT_NET)


def gguf_mixers(
    header: GgufHeader, read_net: NetReader = _gguf_net, *, tiled: bool = True
) -> list[tuple[Mixer, Tensors]]:
    """The mixer of each layer, with its weights and the norm before it and before the feed-forward.

    Args:
        header: the file.
        read_net: reads the weights of a gated DeltaNet.
        tiled: see `GatedDeltaNet`.
    """
    fields = header.fields
    count = header.num_layers - fields.integer("nextn_predict_layers", default=0, high=MAX_LAYERS)
    if count < 1:
        raise fields.wrong("nextn_predict_layers", "fewer than block_count")
    heads = fields.integer("ssm.time_step_rank", low=1, high=MAX_HEADS)
    inner = fields.integer("ssm.inner_size", low=1, high=MAX_WIDTH)
    if inner % heads:
        raise fields.wrong("ssm.inner_size", f"a multiple of {heads}, the number of heads")
    net = GatedDeltaNet(
        kernel=fields.integer("ssm.conv_kernel", low=1, high=MAX_KERNEL),
        num_heads=heads,
        num_key_heads=fields.integer("ssm.group_count", low=1, high=MAX_HEADS),
        key_dim=fields.integer("ssm.state_size", low=1, high=MAX_HEAD_DIM),
        value_dim=inner // heads,
        tiled=tiled,
    )
    kv_heads = header.per_layer("attention.head_count_kv", low=0, high=MAX_HEADS)
    recurrent = _recurrent(header)
    mixers: list[tuple[Mixer, Tensors]] = []
    for index in range(count):
        prefix = f"blk.{index}."
        tensors = dict(header.layer_tensors(index, {"mixer_norm": ""}))
        tensors["ffn_norm"] = TensorRef(header.require(f"{prefix}post_attention_norm.weight"))
        if recurrent[index]:
            mixers.append((net, tensors | read_net(header, prefix, net)))
            continue
        tensors |= header.layer_tensors(index, _ATTENTION)
        tensors |= _gated_queries(header, f"{prefix}attn_q.weight")
        mixers.append((header.attention(header.num_heads[index], kv_heads[index]), tensors))
    return mixers


def _read_gguf(header: GgufHeader) -> ModelSpec:
    layers = [
        LayerSpec(
            mixer,
            Mlp(header.intermediate_sizes[index]),
            {**tensors, **header.layer_tensors(index, MLP)},
        )
        for index, (mixer, tensors) in enumerate(gguf_mixers(header))
    ]
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope("half"),))


def _recurrent(header: GgufHeader) -> tuple[bool, ...]:
    """Which layers are a gated DeltaNet; the list wins over the interval."""
    fields, count, key = header.fields, header.num_layers, "attention.recurrent_layers"
    if fields.is_list(key):
        kinds = tuple(fields.flags(key))
        if len(kinds) != count:
            raise fields.wrong(key, f"a value for each of {count} layers")
        return kinds
    interval = fields.integer("full_attention_interval", default=_INTERVAL, low=1, high=MAX_LAYERS)
    return tuple((index + 1) % interval != 0 for index in range(count))


def checkpoint_mixers(
    header: CheckpointHeader, read_net: NetReader = _checkpoint_net
) -> list[tuple[Mixer, Tensors]]:
    """As `gguf_mixers`."""
    header.refuse("attention_bias")
    text = header.text
    net = GatedDeltaNet(
        kernel=text.integer("linear_conv_kernel_dim", default=4, low=1, high=MAX_KERNEL),
        num_heads=text.integer("linear_num_value_heads", default=32, low=1, high=MAX_HEADS),
        num_key_heads=text.integer("linear_num_key_heads", default=16, low=1, high=MAX_HEADS),
        key_dim=text.integer("linear_key_head_dim", default=128, low=1, high=MAX_HEAD_DIM),
        value_dim=text.integer("linear_value_head_dim", default=128, low=1, high=MAX_HEAD_DIM),
    )
    if "layer_types" in text:
        recurrent = recurrent_layers(header, recurrent=("linear_attention",))
    else:
        interval = text.integer("full_attention_interval", default=_INTERVAL, low=1)
        recurrent = tuple((index + 1) % interval != 0 for index in range(header.num_layers))
    mixers: list[tuple[Mixer, Tensors]] = []
    for index in range(header.num_layers):
        prefix = f"{header.prefix}layers.{index}."
        tensors = plus_one(header.layer_tensors(index, NORMS_BEFORE))
        if recurrent[index]:
            mixers.append((net, tensors | read_net(header, prefix, net)))
            continue
        tensors |= plus_one(header.layer_tensors(index, _ATTENTION))
        tensors |= _gated_queries(header, f"{prefix}self_attn.q_proj.weight")
        heads, kv_heads = header.num_heads[index], header.num_kv_heads[index]
        mixers.append((header.attention(heads, kv_heads), tensors))
    return mixers


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    activation, sizes = header.activation(), header.intermediate_sizes
    layers = [
        LayerSpec(
            mixer,
            Mlp(sizes[index], activation),
            {**tensors, **header.layer_tensors(index, MLP)},
        )
        for index, (mixer, tensors) in enumerate(checkpoint_mixers(header))
    ]
    # Sections of the rotary embedding (M-RoPE) have the same positions in text.
    return header.model(
        layers, plus_one(header.model_tensors(TOP)), ropes=(header.rope(share=0.25),)
    )


def _gated_queries(header: ModelHeader, name: str) -> dict[str, TensorRef]:
    """Queries and output gates, which are stored in turn, head by head."""
    header.require(name)
    dim = header.head_dim
    return {
        "q": TensorRef(name, run=dim, step=2 * dim),
        "attention_gate": TensorRef(name, start=dim, run=dim, step=2 * dim),
    }


QWEN35 = Family(
    "qwen35",
    ("qwen35",),
    _read_gguf,
    {"qwen3_5_text": "Qwen3_5ForCausalLM", "qwen3_5": "Qwen3_5ForConditionalGeneration"},
    _read_checkpoint,
)
