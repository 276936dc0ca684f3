"""Granite 4: Mamba2 and a few layers of attention, with Granite's multipliers; larger ones have experts."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import gguf_experts
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.granite_multipliers import checkpoint_multipliers, gguf_multipliers
from engine.models.families.granitemoe import (
    GRANITE_ROUTING,
    granite_expert_tensors,
    granite_experts,
    shared_mlp,
)
from engine.models.families.hybrid import MAX_KERNEL, recurrent_layers
from engine.models.families.mamba2_mixer import (
    GGUF_MAMBA2,
    checkpoint_mamba2,
    gguf_mamba2,
    mamba2_tensors,
    require_unlimited_time_steps,
)
from engine.models.families.model_header import MAX_HEAD_DIM, MAX_HEADS, MAX_WIDTH
from engine.models.families.role_names import (
    ATTENTION,
    ATTENTION_BIASES,
    MLP,
    NORMS_BEFORE,
    TOP,
)
from engine.models.spec import FeedForward, LayerSpec, Mamba2, Mlp, ModelSpec, Tensors

_MAMBA_KINDS = ("linear_attention", "mamba")


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    mamba = gguf_mamba2(header)
    rope = 0 if fields.flag("rope.scaling.finetuned", default=True) else None
    kv_heads = header.per_layer("attention.head_count_kv", low=0, high=MAX_HEADS)
    scale = fields.number("attention.scale", default=header.head_dim**-0.5)
    layers = []
    for index in range(header.num_layers):
        ffn, weights = _gguf_ffn(header, index)
        tensors = {**header.layer_tensors(index, NORMS_BEFORE), **weights}
        if kv_heads[index] == 0:
            tensors |= mamba2_tensors(header, f"blk.{index}.", mamba, GGUF_MAMBA2)
            layers.append(LayerSpec(mamba, ffn, tensors))
            continue
        tensors |= header.layer_tensors(index, ATTENTION)
        heads = header.num_heads[index]
        mixer = header.attention(heads, kv_heads[index], rope=rope, scale=scale)
        layers.append(LayerSpec(mixer, ffn, tensors))
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope("interleaved"),),
        **gguf_multipliers(header, logit_scale=1.0),
    )


def _gguf_ffn(header: GgufHeader, index: int) -> tuple[FeedForward, Tensors]:
    size = header.intermediate_sizes[index]
    if header.fields.integer("expert_count", default=0) == 0:
        return Mlp(size), header.layer_tensors(index, MLP)
    return gguf_experts(header, index, GRANITE_ROUTING, intermediate_size=size)


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    require_unlimited_time_steps(header, "time_step_limit")
    config = header.text
    mamba = _mamba2(header)
    rope = 0 if config.optional_text("position_embedding_type") == "rope" else None
    key = "layer_types" if "layer_types" in config else "layers_block_type"
    recurrent = recurrent_layers(header, recurrent=_MAMBA_KINDS, key=key)
    names = ATTENTION | header.names_if("attention_bias", ATTENTION_BIASES)
    inner = config.integer("shared_intermediate_size", default=1024, low=1, high=MAX_WIDTH)
    has_experts = config.integer("num_local_experts", default=8) > 0
    ffn = granite_experts(header, inner) if has_experts else Mlp(inner, header.activation())
    layers = []
    for index in range(header.num_layers):
        prefix = f"{header.prefix}layers.{index}."
        if isinstance(ffn, Mlp):
            weights = shared_mlp(header, index, inner)
        else:
            weights = granite_expert_tensors(header, index, ffn)
        tensors = {**header.layer_tensors(index, NORMS_BEFORE), **weights}
        if recurrent[index]:
            tensors |= mamba2_tensors(header, prefix, mamba, checkpoint_mamba2("mamba"))
            layers.append(LayerSpec(mamba, ffn, tensors))
            continue
        tensors |= header.layer_tensors(index, names)
        mixer = header.attention(
            header.num_heads[index],
            header.num_kv_heads[index],
            rope=rope,
            scale=config.number("attention_multiplier", default=1.0),
        )
        layers.append(LayerSpec(mixer, ffn, tensors))
    return header.model(
        layers,
        header.model_tensors(TOP),
        ropes=(header.rope(),),
        **checkpoint_multipliers(header),
    )


def _mamba2(header: CheckpointHeader) -> Mamba2:
    config = header.text
    heads = config.integer("mamba_n_heads", default=128, low=1, high=MAX_HEADS)
    inner = config.integer("mamba_expand", default=2, low=1, high=64) * header.hidden_size
    if inner % heads:
        raise config.wrong("mamba_n_heads", f"a divisor of {inner}, the inner width")
    return Mamba2(
        kernel=config.integer("mamba_d_conv", default=4, low=1, high=MAX_KERNEL),
        num_heads=heads,
        num_groups=config.integer("mamba_n_groups", default=1, low=1, high=MAX_HEADS),
        head_dim=inner // heads,
        state_dim=config.integer("mamba_d_state", default=256, low=1, high=MAX_HEAD_DIM),
    )


GRANITE_HYBRID = Family(
    "granitehybrid",
    ("granitehybrid",),
    _read_gguf,
    {"granitemoehybrid": "GraniteMoeHybridForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
