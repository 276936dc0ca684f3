"""Names of roles (`engine.models.spec.Tensors`) in checkpoints of transformers; families combine them."""

ATTENTION = {
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
}
MLP = {
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
}
PROJECTIONS = ATTENTION | MLP
NORMS_BEFORE = {
    "mixer_norm": "input_layernorm.weight",
    "ffn_norm": "post_attention_layernorm.weight",
}
"""Norms of the inputs of attention and feed-forward."""

LLAMA = NORMS_BEFORE | PROJECTIONS
"""The roles that nearly all families have; most others add a few."""

NORMS_AROUND = {
    "mixer_norm": "input_layernorm.weight",
    "mixer_post_norm": "post_attention_layernorm.weight",
    "ffn_norm": "pre_feedforward_layernorm.weight",
    "ffn_post_norm": "post_feedforward_layernorm.weight",
}
"""Norms of inputs and of outputs (Gemma)."""

NORMS_AFTER = {
    "mixer_post_norm": "post_attention_layernorm.weight",
    "ffn_post_norm": "post_feedforward_layernorm.weight",
}
"""Norms of outputs alone (OLMo 2)."""

QK_NORMS = {"q_norm": "self_attn.q_norm.weight", "k_norm": "self_attn.k_norm.weight"}

QKV_BIASES = {
    "q.bias": "self_attn.q_proj.bias",
    "k.bias": "self_attn.k_proj.bias",
    "v.bias": "self_attn.v_proj.bias",
}
ATTENTION_BIASES = QKV_BIASES | {"o.bias": "self_attn.o_proj.bias"}
MLP_BIASES = {
    "gate.bias": "mlp.gate_proj.bias",
    "up.bias": "mlp.up_proj.bias",
    "down.bias": "mlp.down_proj.bias",
}
TOP = {"embedding": "embed_tokens.weight", "final_norm": "norm.weight"}
"""Roles outside the layers, besides `lm_head`."""
