"""Gemma 4, its text part: layers with a window have heads of another size than those without.

The last layers read the keys of earlier ones, and all add embeddings of their own. One model has experts
beside the feed-forward of each layer, with norms of their own.
"""

from collections.abc import Sequence
from dataclasses import replace

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import (
    ExpertNames,
    checkpoint_experts,
    expert_count,
    gguf_experts,
    used_experts,
)
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import MAX_HEAD_DIM, MAX_HEADS, MAX_WIDTH, ModelHeader
from engine.models.families.role_names import NORMS_AROUND, PROJECTIONS, QK_NORMS, TOP
from engine.models.families.windows import sliding_windows
from engine.models.spec import (
    Activation,
    Attention,
    Experts,
    FeedForward,
    LayerSpec,
    Mlp,
    ModelSpec,
    Routing,
    TensorRef,
    Tensors,
)

_NAMES = PROJECTIONS | NORMS_AROUND | QK_NORMS | {"output_scale": "layer_scalar"}
PER_LAYER = {
    "per_layer_gate": "per_layer_input_gate.weight",
    "per_layer_projection": "per_layer_projection.weight",
    "per_layer_norm": "post_per_layer_input_norm.weight",
}
PER_LAYER_TOP = {
    "per_layer_embedding": "embed_tokens_per_layer.weight",
    "per_layer_model_projection": "per_layer_model_projection.weight",
    "per_layer_model_norm": "per_layer_projection_norm.weight",
}
_BESIDE = ("gate", "up", "down")
"""Roles of the feed-forward, which beside experts is the shared network."""

_EXPERT_NAMES = ExpertNames("", "router.proj.weight")
_EXPERT_NORMS = {
    "router_norm": "router.scale",
    "router_scale": "router.per_expert_scale",
    "experts_norm": "pre_feedforward_layernorm_2.weight",
    "experts_post_norm": "post_feedforward_layernorm_2.weight",
    "shared_post_norm": "post_feedforward_layernorm_1.weight",
}
_GGUF_EXPERT_NORMS = {
    "router_norm": "ffn_gate_inp.scale",
    "experts_norm": "pre_ffw_norm_2.weight",
    "experts_post_norm": "post_ffw_norm_2.weight",
    "shared_post_norm": "post_ffw_norm_1.weight",
}
_GGUF_EXPERT_SCALE = "ffn_down_exps.scale"
_OPTIONAL = {"v": "attn_v", "output_scale": "layer_output_scale"}
"""Roles that a layer of a GGUF file may lack: one without v uses its keys as values."""
_DEFAULTS = {
    "vocab_size": 262_144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-6,
    "sliding_window": 512,
    "hidden_size_per_layer_input": 256,
}
_ROPES = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
    "full_attention": {
        "rope_type": "proportional",
        "partial_rotary_factor": 0.25,
        "rope_theta": 1_000_000.0,
    },
}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    sliding = header.sliding_layers(6)
    local_dim = header.head_dim_of("attention.key_length_swa", "attention.value_length_swa")
    attentions = share_keys(
        header,
        [
            replace(attention, head_dim=local_dim if slides else attention.head_dim)
            for attention, slides in zip(
                _attentions(header, sliding, header.window()), sliding, strict=True
            )
        ],
        fields.integer("attention.shared_kv_layers", default=0),
        "attention.shared_kv_layers",
    )
    width = fields.integer("embedding_length_per_layer_input", default=0, high=MAX_WIDTH)
    layers = []
    for index, attention in enumerate(attentions):
        names = _names(attention, width)
        for role, name in _OPTIONAL.items():
            if f"blk.{index}.{name}.weight" not in header.shapes:
                names.pop(role, None)
        weights = header.layer_tensors(index, names)
        mlp = Mlp(header.intermediate_sizes[index], "gelu_tanh")
        ffn: FeedForward = mlp
        if f"blk.{index}.ffn_gate_inp.weight" in header.shapes:
            routing = _routing(header)
            experts, own = gguf_experts(header, index, routing, activation="gelu_tanh")
            own |= header.named(f"blk.{index}.", _GGUF_EXPERT_NORMS)
            if (scale := f"blk.{index}.{_GGUF_EXPERT_SCALE}") in header.shapes:
                own["router_scale"] = TensorRef(scale)
            ffn, weights = replace(experts, shared=mlp), _beside(weights, own)
        layers.append(LayerSpec(attention, ffn, weights))
    return header.model(
        layers,
        header.model_tensors(TOP | (PER_LAYER_TOP if width else {})),
        ropes=(
            header.rope("half"),
            header.rope("half", head_dim=local_dim, local=True, theta=10_000.0),
        ),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=fields.number("final_logit_softcapping", default=0.0, positive=False),
        per_layer_width=width,
    )


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    header = header.with_defaults(_DEFAULTS)
    if "rope_parameters" not in header.text:
        header = header.with_defaults({"rope_parameters": _ROPES})
    config = header.text
    header.refuse("attention_bias")
    if config.text("use_bidirectional_attention", default="vision") == "all":
        raise header.unsupported("use_bidirectional_attention", "vision or absent")
    sliding = (*header.sliding_layers(6)[:-1], False)  # transformers forces the last one, too
    sizes = [_global_sizes(header, layer) for layer in range(header.num_layers)]
    keys_are_values = config.flag("attention_k_eq_v", default=False)
    attentions = share_keys(
        header,
        [
            attention
            if slides
            else replace(attention, head_dim=head_dim, num_kv_heads=num_kv_heads)
            for attention, slides, (head_dim, num_kv_heads) in zip(
                _attentions(header, sliding, header.window()), sliding, sizes, strict=True
            )
        ],
        config.integer("num_kv_shared_layers", default=0),
        "num_kv_shared_layers",
    )
    width = config.integer("hidden_size_per_layer_input", high=MAX_WIDTH)
    double = config.flag("use_double_wide_mlp", default=False)
    activation = header.activation("hidden_activation", "gelu_pytorch_tanh")
    has_experts = config.flag("enable_moe_block", default=False)
    experts = _experts(header, activation) if has_experts else None
    layers = []
    for index, attention in enumerate(attentions):
        names = _names(attention, width)
        if keys_are_values and not sliding[index]:
            names.pop("v", None)
        inner = header.intermediate_sizes[index]
        if double and attention.kv_layer is not None:
            inner *= 2
        weights = header.layer_tensors(index, names)
        mlp = Mlp(inner, activation)
        ffn: FeedForward = mlp
        if experts is not None:
            own = checkpoint_experts(header, index, experts, _EXPERT_NAMES)
            own |= header.named(f"{header.prefix}layers.{index}.", _EXPERT_NORMS)
            ffn, weights = replace(experts, shared=mlp), _beside(weights, own)
        layers.append(LayerSpec(attention, ffn, weights))
    return header.model(
        layers,
        header.model_tensors(TOP | (PER_LAYER_TOP if width else {}), tied=True),
        ropes=(
            header.rope(kind="full_attention", head_dim=attentions[-1].head_dim),
            header.local_rope(theta=10_000.0),
        ),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=config.number("final_logit_softcapping", default=0.0, positive=False),
        per_layer_width=width,
    )


def _routing(header: ModelHeader) -> Routing:
    """The router's input is divided by sqrt(hidden), besides its norm."""
    return Routing("softmax", renormalise=True, logit_scale=header.hidden_size**-0.5)


def _experts(header: CheckpointHeader, activation: Activation) -> Experts:
    config = header.renamed({"num_experts_per_tok": "top_k_experts"})
    count = expert_count(config, "num_experts")
    size = header.text.integer("moe_intermediate_size", low=1, high=MAX_WIDTH)
    return Experts(count, used_experts(config, count), size, _routing(header), activation)


def _beside(tensors: Tensors, own: Tensors) -> Tensors:
    """The weights of a layer with those of its experts, to which its feed-forward is the shared network."""
    shared = {(f"shared.{role}" if role in _BESIDE else role): at for role, at in tensors.items()}
    return {**own, **shared}


def _attentions(
    header: ModelHeader, sliding: tuple[bool, ...], window: int
) -> tuple[Attention, ...]:
    attentions = header.attentions(
        windows=sliding_windows(header, sliding, window),
        ropes=tuple(map(int, sliding)),
        scale=1.0,
    )
    return tuple(replace(attention, value_norm=True) for attention in attentions)


def share_keys(
    header: ModelHeader, attentions: Sequence[Attention], shared: int, key: str
) -> list[Attention]:
    """The attentions, of which the last `shared` read the keys of the last earlier layer of their kind."""
    first = len(attentions) - shared
    last: dict[int | None, int] = {}
    result: list[Attention] = []
    for index, attention in enumerate(attentions):
        if index < first:
            last[attention.rope] = index
            result.append(attention)
        elif attention.rope in last:
            result.append(replace(attention, kv_layer=last[attention.rope]))
        else:
            raise header.fields.wrong(key, "small enough that a layer of each kind has keys")
    return result


def _global_sizes(header: CheckpointHeader, layer: int) -> tuple[int, int]:
    """Head dimension and KV heads of a layer without a window."""
    config = header.text
    dim = config.integer("global_head_dim", default=512, low=2, high=MAX_HEAD_DIM)
    heads = header.num_kv_heads[layer]
    if config.flag("attention_k_eq_v", default=False):
        heads = config.integer("num_global_key_value_heads", default=heads, low=1, high=MAX_HEADS)
    per_layer = config.mapping("per_layer_config")
    own = None if per_layer is None else per_layer.mapping(str(layer))
    if own is None:
        return dim, heads
    return (
        own.integer("head_dim", default=header.head_dim, low=2, high=MAX_HEAD_DIM),
        own.integer(
            "num_key_value_heads", default=header.num_kv_heads[layer], low=1, high=MAX_HEADS
        ),
    )


def _names(attention: Attention, width: int) -> dict[str, str]:
    return without_keys(_NAMES | (PER_LAYER if width else {}), attention)


def without_keys(names: dict[str, str], attention: Attention) -> dict[str, str]:
    """The names of a layer's weights, without those of keys and values if it reads the keys of another."""
    if attention.kv_layer is None:
        return names
    return {role: name for role, name in names.items() if role not in ("k", "v", "k_norm")}


GEMMA4 = Family(
    "gemma4",
    ("gemma4",),
    _read_gguf,
    {"gemma4_text": "Gemma4ForCausalLM", "gemma4": "Gemma4ForConditionalGeneration"},
    _read_checkpoint,
    reads_experts=True,
)
