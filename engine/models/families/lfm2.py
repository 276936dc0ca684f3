"""LFM2 and LFM2.5: gated short convolutions, and a few layers of attention; experts in the larger ones."""

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
from engine.models.families.hybrid import MAX_KERNEL, optional_bias, recurrent_layers
from engine.models.families.model_header import MAX_HEADS, MAX_WIDTH, ModelHeader, split_rows
from engine.models.families.role_names import TOP
from engine.models.spec import (
    Experts,
    FeedForward,
    LayerSpec,
    Mlp,
    ModelSpec,
    Routing,
    ShortConv,
    TensorRef,
    Tensors,
)

_ATTENTION = {
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.out_proj.weight",
    "q_norm": "self_attn.q_layernorm.weight",
    "k_norm": "self_attn.k_layernorm.weight",
}
_NORMS = {"mixer_norm": "operator_norm.weight", "ffn_norm": "ffn_norm.weight"}
_MLP = {
    "gate": "feed_forward.w1.weight",
    "up": "feed_forward.w3.weight",
    "down": "feed_forward.w2.weight",
}
_EXPERTS = ExpertNames("feed_forward.", gate="w1", up="w3", down="w2")


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    if not fields.flag("attention.causal", default=True):  # its embedding models
        raise fields.wrong("attention.causal", "true: bidirectional attention is not supported")
    kernel = fields.integer("shortconv.l_cache", low=1, high=MAX_KERNEL)
    kv_heads = header.per_layer("attention.head_count_kv", low=0, high=MAX_HEADS)
    routing = Routing(
        "sigmoid", renormalise=True, scale=fields.number("expert_weights_scale", default=1.0)
    )
    layers = []
    for index, intermediate_size in enumerate(header.intermediate_sizes):
        mlp: FeedForward = Mlp(intermediate_size)
        tensors = dict(header.layer_tensors(index, _NORMS))
        if f"blk.{index}.ffn_gate_inp.weight" in header.shapes:
            mlp, experts = gguf_experts(header, index, routing)
            tensors |= experts
        else:
            tensors |= header.layer_tensors(index, _MLP)
        if kv_heads[index] == 0:
            tensors |= _short_conv(header, f"blk.{index}.shortconv.")
            layers.append(LayerSpec(ShortConv(kernel), mlp, tensors))
            continue
        tensors |= header.layer_tensors(index, _ATTENTION)
        heads = header.num_heads[index]
        mixer = header.attention(heads, kv_heads[index], window=header.window())
        layers.append(LayerSpec(mixer, mlp, tensors))
    # Files name the norm of the output after the embedding.
    tensors = {
        **header.model_tensors({"embedding": TOP["embedding"]}),
        "final_norm": TensorRef(header.require("token_embd_norm.weight")),
    }
    return header.model(layers, tensors, ropes=(header.rope("half"),))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    header = header.renamed({"rms_norm_eps": "norm_eps"})
    if "tie_embedding" in header.text:
        header = header.renamed({"tie_word_embeddings": "tie_embedding"})
    kernel = header.text.integer("conv_L_cache", default=3, low=1, high=MAX_KERNEL)
    convolved = _convolved(header)
    layers = []
    for index in range(header.num_layers):
        tensors = dict(header.layer_tensors(index, _NORMS))
        mlp, weights = _feed_forward(header, index)
        tensors |= weights
        if convolved[index]:
            tensors |= _short_conv(header, f"{header.prefix}layers.{index}.conv.")
            layers.append(LayerSpec(ShortConv(kernel), mlp, tensors))
            continue
        tensors |= header.layer_tensors(index, _ATTENTION)
        heads, kv_heads = header.num_heads[index], header.num_kv_heads[index]
        layers.append(LayerSpec(header.attention(heads, kv_heads), mlp, tensors))
    return header.model(
        layers,
        header.model_tensors(
            {"embedding": TOP["embedding"], "final_norm": "embedding_norm.weight"}, tied=True
        ),
        ropes=(header.rope(theta=1_000_000.0),),
    )


def _feed_forward(header: CheckpointHeader, index: int) -> tuple[FeedForward, Tensors]:
    """The feed-forward of a layer, and its weights."""
    prefix = f"{header.prefix}layers.{index}.feed_forward."
    if f"{prefix}gate.weight" not in header.shapes:
        tensors = header.layer_tensors(index, _MLP)
        # The config's size is adjusted in several ways.
        return Mlp(header.width_of(tensors["gate"].name)), tensors
    config = header.text
    count = expert_count(header, "num_experts", "num_local_experts")
    experts = Experts(
        count,
        used_experts(header, count, default=4),
        config.integer("moe_intermediate_size", low=1, high=MAX_WIDTH),
        Routing(
            "sigmoid",
            renormalise=config.flag("norm_topk_prob", default=True),
            scale=config.number("routed_scaling_factor", default=1.0),
        ),
    )
    weights = checkpoint_experts(header, index, experts, _EXPERTS)
    if config.flag("use_expert_bias", default=True):
        weights["router_correction"] = TensorRef(header.require(f"{prefix}expert_bias"))
    return experts, weights


def _convolved(header: CheckpointHeader) -> tuple[bool, ...]:
    """Which layers have a convolution."""
    if "layer_types" in header.text:
        return recurrent_layers(header, recurrent=("conv",))
    attending = header.text.integers("full_attn_idxs")
    return tuple(index not in attending for index in range(header.num_layers))


def _short_conv(header: ModelHeader, prefix: str) -> dict[str, TensorRef]:
    """The weights of a convolution; its three inputs are projected by one matrix."""
    hidden = header.hidden_size
    parts = dict.fromkeys(("conv_before", "conv_after", "conv_in"), hidden)
    tensors = split_rows(header.require(f"{prefix}in_proj.weight"), parts)
    if f"{prefix}in_proj.bias" in header.shapes:
        biases = {f"{role}.bias": rows for role, rows in parts.items()}
        tensors |= split_rows(f"{prefix}in_proj.bias", biases)
    return {
        **tensors,
        "conv": TensorRef(header.require(f"{prefix}conv.weight")),
        **optional_bias(header, prefix, "conv", "conv"),
        "o": TensorRef(header.require(f"{prefix}out_proj.weight")),
        **optional_bias(header, prefix, "o", "out_proj"),
    }


LFM2 = Family(
    "lfm2",
    ("lfm2", "lfm2moe"),
    _read_gguf,
    {"lfm2": "Lfm2ForCausalLM", "lfm2_moe": "Lfm2MoeForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)
