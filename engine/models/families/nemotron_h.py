"""Nemotron-H and Nemotron 3: layers that are a Mamba2, an attention, a feed-forward or experts alone.

Experts behind a narrower projection (`moe_latent_size`) are refused. Blocks for multi-token prediction are
not read.
"""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import (
    MAX_EXPERTS,
    expert_count,
    gguf_experts,
    of_each_expert,
    used_experts,
)
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.hybrid import MAX_KERNEL, optional_bias
from engine.models.families.mamba2_mixer import (
    GGUF_MAMBA2,
    checkpoint_mamba2,
    gguf_mamba2,
    mamba2_tensors,
    require_unlimited_time_steps,
)
from engine.models.families.model_header import (
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_WIDTH,
)
from engine.models.families.role_names import ATTENTION, TOP
from engine.models.spec import (
    Experts,
    FeedForward,
    LayerSpec,
    Mamba2,
    Mlp,
    ModelSpec,
    Routing,
    TensorRef,
    Tensors,
)

_NAMES = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj"}
_KINDS = {
    "linear_attention": "mamba",
    "mamba": "mamba",
    "full_attention": "attention",
    "attention": "attention",
    "mlp": "mlp",
    "moe": "experts",
}
_NO_LATENT = "absent: experts behind a narrower projection are not supported"
_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "experts"}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    if "attention.layer_norm_rms_epsilon" not in header.fields:
        epsilon = header.fields.number("attention.layer_norm_epsilon")
        header = header.with_defaults({"attention.layer_norm_rms_epsilon": epsilon})
    mamba = gguf_mamba2(header)
    kv_heads = header.per_layer("attention.head_count_kv", low=0, high=MAX_HEADS)
    inner = header.per_layer("feed_forward_length", low=0, high=MAX_WIDTH)
    fields, layers = header.fields, []
    count = header.num_layers - fields.integer("nextn_predict_layers", default=0, high=MAX_LAYERS)
    if count < 1:
        raise fields.wrong("nextn_predict_layers", "fewer than block_count")
    for index in range(count):
        prefix = f"blk.{index}."
        norm = TensorRef(header.require(f"{prefix}attn_norm.weight"))
        tensors: Tensors
        if inner[index] > 0:
            ffn, weights = _gguf_ffn(header, index, inner[index])
            layers.append(LayerSpec(None, ffn, {"ffn_norm": norm, **weights}))
        elif kv_heads[index] > 0:
            tensors = {"mixer_norm": norm, **header.layer_tensors(index, ATTENTION)}
            mixer = header.attention(header.num_heads[index], kv_heads[index], rope=None)
            layers.append(LayerSpec(mixer, None, tensors))
        else:
            tensors = {"mixer_norm": norm, **mamba2_tensors(header, prefix, mamba, GGUF_MAMBA2)}
            layers.append(LayerSpec(mamba, None, tensors))
    return header.model(layers, header.model_tensors(TOP), ropes=())


def _gguf_ffn(header: GgufHeader, index: int, size: int) -> tuple[FeedForward, Tensors]:
    fields = header.fields
    if fields.integer("expert_count", default=0) == 0:
        return Mlp(size, "relu2"), header.layer_tensors(index, {"up": "", "down": ""})
    if fields.integer("moe_latent_size", default=0) > 0:
        raise fields.wrong("moe_latent_size", _NO_LATENT)
    groups = fields.integer("expert_group_count", default=1, low=1, high=MAX_EXPERTS)
    routing = Routing(
        "sigmoid",
        renormalise=fields.flag("expert_weights_norm", default=False),
        scale=fields.number("expert_weights_scale", default=1.0),
        groups=groups,
        used_groups=fields.integer("expert_group_used_count", default=1, low=1, high=groups),
    )
    return gguf_experts(header, index, routing, activation="relu2", gated=False)


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    require_unlimited_time_steps(header, "time_step_limit", "mamba_dt_limit")
    kinds = _kinds(header)
    header = header.renamed({"rms_norm_eps": "layer_norm_epsilon"})
    header = header.with_defaults({"num_hidden_layers": len(kinds), "head_dim": 128})
    header.refuse("use_bias")
    text, mamba = header.text, _mamba2(header)
    mlp = Mlp(
        text.integer("intermediate_size", default=21_504, low=1, high=MAX_WIDTH),
        header.activation("mlp_hidden_act", "relu2"),
    )
    experts = _experts(header) if "experts" in kinds else None
    heads = text.integer("num_attention_heads", default=32, low=1, high=MAX_HEADS)
    kv_heads = text.integer("num_key_value_heads", default=heads, low=1, high=MAX_HEADS)
    attending = header.attention(heads, kv_heads, rope=None)
    root = "backbone." if "backbone.embeddings.weight" in header.shapes else "model."
    layers = []
    for index, kind in enumerate(kinds):
        prefix = f"{root}layers.{index}."
        norm = TensorRef(header.require(f"{prefix}norm.weight"))
        if kind == "mlp":
            weights = _linears(header, prefix, {"up": "up_proj", "down": "down_proj"})
            layers.append(LayerSpec(None, mlp, {"ffn_norm": norm, **weights}))
        elif kind == "experts" and experts is not None:
            weights = _expert_tensors(header, f"{prefix}mixer.", experts)
            layers.append(LayerSpec(None, experts, {"ffn_norm": norm, **weights}))
        elif kind == "attention":
            weights = _linears(header, prefix, _NAMES)
            layers.append(LayerSpec(attending, None, {"mixer_norm": norm, **weights}))
        else:
            weights = mamba2_tensors(header, prefix, mamba, checkpoint_mamba2("mixer"))
            layers.append(LayerSpec(mamba, None, {"mixer_norm": norm, **weights}))
    tensors = {
        "embedding": TensorRef(header.require(f"{root}embeddings.weight")),
        "final_norm": TensorRef(header.require(f"{root}norm_f.weight")),
        **header.model_tensors({}),
    }
    return header.model(layers, tensors, ropes=())


def _kinds(header: CheckpointHeader) -> list[str]:
    """What each layer is."""
    text, pattern = header.text, "hybrid_override_pattern"
    if pattern in text:
        letters = text.text(pattern)
        if not letters or not set(letters).issubset(_PATTERN):
            raise header.unsupported(pattern, f"made of {', '.join(_PATTERN)}")
        return [_PATTERN[letter] for letter in letters]
    key = "layers_block_type" if "layers_block_type" in text else "layer_types"
    names = text.texts(key)
    if not names or not set(names).issubset(_KINDS):
        raise header.unsupported(key, f"made of {', '.join(_KINDS)}")
    return [_KINDS[name] for name in names]


def _mamba2(header: CheckpointHeader) -> Mamba2:
    text = header.text
    return Mamba2(
        kernel=text.integer("conv_kernel", default=4, low=1, high=MAX_KERNEL),
        num_heads=text.integer("mamba_num_heads", default=128, low=1, high=MAX_HEADS),
        num_groups=text.integer("n_groups", default=8, low=1, high=MAX_HEADS),
        head_dim=text.integer("mamba_head_dim", default=64, low=1, high=MAX_HEAD_DIM),
        state_dim=text.integer("ssm_state_size", default=128, low=1, high=MAX_HEAD_DIM),
    )


def _experts(header: CheckpointHeader) -> Experts:
    text, activation = header.text, header.activation("mlp_hidden_act", "relu2")
    if text.optional_integer("moe_latent_size") is not None:
        raise header.unsupported("moe_latent_size", _NO_LATENT)
    count = expert_count(header, "n_routed_experts", "num_local_experts")
    groups = text.integer("n_group", default=1, low=1, high=count)
    routing = Routing(
        "sigmoid",
        renormalise=text.flag("norm_topk_prob", default=True),
        scale=text.number("routed_scaling_factor", default=1.0),
        groups=groups,
        used_groups=text.integer("topk_group", default=1, low=1, high=groups),
    )
    shared = text.integer(
        "moe_shared_expert_intermediate_size", default=7688, low=1, high=MAX_WIDTH
    )
    return Experts(
        count,
        used_experts(header, count, default=2),
        text.integer("moe_intermediate_size", default=7688, low=1, high=MAX_WIDTH),
        routing,
        activation,
        Mlp(shared, activation),
    )


def _expert_tensors(header: CheckpointHeader, block: str, experts: Experts) -> dict[str, TensorRef]:
    """The weights of experts and of the shared network; `block` comes before their names."""
    tensors = header.named(
        block, {"router": "gate.weight", "router_correction": "gate.e_score_correction_bias"}
    )
    for part in ("up", "down"):
        stacked = f"{block}experts.{part}_proj"
        if stacked in header.shapes:
            tensors[f"experts.{part}"] = TensorRef(stacked)
        else:
            pattern = f"{block}experts.{{}}.{part}_proj.weight"
            tensors[f"experts.{part}"] = of_each_expert(header, pattern, experts.count)
        name = f"shared_experts.{part}_proj"
        tensors[f"shared.{part}"] = TensorRef(header.require(f"{block}{name}.weight"))
        tensors |= optional_bias(header, block, f"shared.{part}", name)
    return tensors


def _linears(header: CheckpointHeader, prefix: str, names: dict[str, str]) -> dict[str, TensorRef]:
    tensors = {}
    for role, name in names.items():
        full = f"{prefix}mixer."
        tensors[role] = TensorRef(header.require(f"{full}{name}.weight"))
        tensors |= optional_bias(header, full, role, name)
    return tensors


NEMOTRON_H = Family(
    "nemotron_h",
    ("nemotron_h", "nemotron_h_moe"),
    _read_gguf,
    {"nemotron_h": "NemotronHForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
