"""Tiny headers of every family, without files: metadata that hold what any family reads."""

from collections.abc import Iterator, Mapping

from engine.files.fields import Fields
from engine.models import gguf
from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.registry import CHECKPOINT_FAMILIES, CLASSES
from engine.models.spec import ModelSpec

GGUF_KEYS: dict[str, object] = {
    "block_count": 3,
    "context_length": 128,
    "embedding_length": 32,
    "feed_forward_length": 64,
    "activation_sparsity_scale": [1.6, 0.0, float("-inf")],
    "altup.active_idx": 0,
    "altup.num_inputs": 4,
    "attention.head_count": 4,
    "attention.head_count_kv": [2, 2, 2],
    "attention.key_length": 8,
    "attention.value_length": 8,
    "attention.key_length_swa": 4,
    "attention.value_length_swa": 4,
    "attention.layer_norm_epsilon": 1e-5,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "attention.scale": 0.25,
    "attention.shared_kv_layers": 1,
    "attention.sliding_window": 16,
    "attention.sliding_window_pattern": [True, False, False],
    "attention.temperature_scale": 0.1,
    "attn_logit_softcapping": 50.0,
    "embedding_length_per_layer_input": 8,
    "embedding_scale": 2.0,
    "expert_count": 0,
    "expert_feed_forward_length": 32,
    "expert_gating_func": 2,
    "expert_group_count": 1,
    "expert_shared_count": 1,
    "expert_shared_feed_forward_length": 32,
    "expert_used_count": 2,
    "expert_weights_norm": True,
    "final_logit_softcapping": 30.0,
    "leading_dense_block_count": 1,
    "nextn_predict_layers": 0,
    "logit_scale": 3.0,
    "residual_scale": 0.5,
    "rope.dimension_count": 8,
    "rope.dimension_count_swa": 4,
    "rope.freq_base": 10_000.0,
    "rope.freq_base_swa": 10_000.0,
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.factor": 4.0,
    "rope.scaling.finetuned": True,
    "rope.scaling.original_context_length": 32,
    "rope.scaling.type": "yarn",
    "rope.scaling.yarn_log_multiplier": 1.0,
    "shortconv.l_cache": 3,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 2,
    "ssm.inner_size": 64,
    "ssm.state_size": 8,
    "ssm.time_step_rank": 4,
}
_NO_WINDOW: dict[str, object] = {"attention.sliding_window": None}
"""Of architectures whose files do not tell which layers have a window."""
_EXPERTS: dict[str, object] = {"expert_count": 8}
_ONE_ATTENDS: dict[str, object] = {"attention.head_count_kv": [2, 0, 0]}
_RECURRENT: dict[str, object] = {"attention.recurrent_layers": [True, False, True]}

OF_ARCHITECTURE: dict[str, dict[str, object]] = {
    "gemma4": _EXPERTS,
    "nemotron_h_moe": _ONE_ATTENDS | _EXPERTS | {"feed_forward_length": [0, 0, 64]},
    "qwen2": _NO_WINDOW,
    "qwen3": _NO_WINDOW,
    "smollm3": _NO_WINDOW,
    "mistral3": _NO_WINDOW,
    "lfm2": _ONE_ATTENDS,
    "lfm2moe": _ONE_ATTENDS | _EXPERTS,
    "qwen35": _RECURRENT,
    "qwen35moe": _RECURRENT | _EXPERTS,
    "qwen3next": _RECURRENT | _EXPERTS,
    "granitehybrid": _ONE_ATTENDS,
    "nemotron_h": _ONE_ATTENDS | {"feed_forward_length": [0, 0, 64]},
    "qwen3moe": _NO_WINDOW | _EXPERTS,
    "olmoe": _EXPERTS,
    "gpt-oss": _EXPERTS,
    "granitemoe": _EXPERTS,
    "glm4moe": _EXPERTS,
}
"""What differs from `GGUF_KEYS` in the files of an architecture; None for a key that they lack."""

ROPE: dict[str, object] = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
    "partial_rotary_factor": 1.0,
    "short_factor": [1.0] * 4,
    "long_factor": [2.0] * 4,
}
CONFIG: dict[str, object] = {
    "activation_function": "gelu_new",
    "activation_sparsity_pattern": [0.95, 0.5, 0.0],
    "altup_active_idx": 0,
    "altup_correct_scale": True,
    "altup_num_inputs": 4,
    "attention_bias": False,
    "attention_multiplier": 0.25,
    "embedding_multiplier": 2.0,
    "first_k_dense_replace": 1,
    "global_head_dim": 8,
    "head_dim": 8,
    "hidden_act": "silu",
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 32,
    "hidden_size_per_layer_input": 8,
    "intermediate_size": 64,
    "laurel_rank": 8,
    "layer_norm_eps": 1e-5,
    "layer_norm_epsilon": 1e-5,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "logits_scaling": 3.0,
    "max_position_embeddings": 128,
    "max_window_layers": 1,
    "n_embd": 32,
    "n_head": 4,
    "n_inner": 64,
    "n_layer": 3,
    "n_positions": 128,
    "no_rope_layers": [1, 1, 0],
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "num_kv_shared_layers": 1,
    "per_layer_config": {"1": {"head_dim": 8}},
    "query_pre_attn_scalar": 8,
    "residual_multiplier": 0.5,
    "rms_norm_eps": 1e-5,
    "rope_parameters": ROPE,
    "sliding_window": 16,
    "tie_word_embeddings": True,
    "use_sliding_window": True,
    "vocab_size": 64,
    "vocab_size_per_layer_input": 60,
    "conv_L_cache": 3,
    "conv_kernel": 4,
    "decoder_sparse_step": 1,
    "enable_moe_block": False,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 16,
    "mamba_d_conv": 4,
    "mamba_d_state": 8,
    "mamba_expand": 2,
    "mamba_head_dim": 16,
    "mamba_n_groups": 2,
    "mamba_n_heads": 4,
    "mamba_num_heads": 4,
    "mlp_hidden_act": "relu2",
    "mlp_only_layers": [],
    "moe_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 32,
    "n_group": 1,
    "n_groups": 2,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "norm_eps": 1e-5,
    "norm_topk_prob": True,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_local_experts": 8,
    "shared_expert_intermediate_size": 32,
    "shared_intermediate_size": 64,
    "ssm_state_size": 8,
    "top_k_experts": 2,
    "time_step_limit": [0.0, {"__float__": "Infinity"}],
    "topk_group": 1,
}
_CONVOLVED: dict[str, object] = {"layer_types": ["conv", "full_attention", "conv"]}
_LINEAR: dict[str, object] = {
    "layer_types": ["linear_attention", "full_attention", "linear_attention"]
}
OF_MODEL_TYPE: dict[str, dict[str, object]] = {
    "gemma4": {"enable_moe_block": True},
    "lfm2": _CONVOLVED,
    "lfm2_moe": _CONVOLVED,
    "qwen3_5": _LINEAR,
    "qwen3_5_text": _LINEAR,
    "qwen3_5_moe": _LINEAR,
    "qwen3_5_moe_text": _LINEAR,
    "qwen3_next": _LINEAR,
    "gpt_oss": {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "granitemoehybrid": {
        "layer_types": ["mamba", "attention", "linear_attention"],
        "num_local_experts": 0,
    },
    "nemotron_h": {"layer_types": ["linear_attention", "mlp", "moe", "full_attention"]},
}
"""What differs from `CONFIG` in the files of a model type."""


class EveryTensor(Mapping[str, tuple[int, ...]]):
    """A tensor table that has every name, but those that contain one of some words."""

    def __init__(self, *without: str) -> None:
        self._without = without

    def __getitem__(self, name: str) -> tuple[int, ...]:
        if name not in self:
            raise KeyError(name)
        return (64, 32)

    def __contains__(self, name: object) -> bool:
        return not any(word in str(name) for word in self._without)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


ABSENT: dict[str, tuple[str, ...]] = {
    "stablelm": ("attn_q_norm",),
    "granitehybrid": ("ssm_in.bias",),
    "granitemoehybrid": ("in_proj.bias",),
    "nemotron_h": ("ssm_in.bias", "in_proj.bias"),
    "nemotron_h_moe": ("ssm_in.bias", "ffn_gate_up_exps"),
    "lfm2": ("ffn_gate_inp", "feed_forward.gate."),
}
"""Parts of the names of tensors that the files of an architecture or model type lack."""


def read_gguf(architecture: str, changes: Mapping[str, object]) -> ModelSpec:
    """The description of a GGUF file with some keys changed."""
    keys = GGUF_KEYS | OF_ARCHITECTURE.get(architecture, {}) | changes
    metadata = {f"{architecture}.{key}": value for key, value in keys.items()}
    metadata["general.architecture"] = architecture
    tensors = EveryTensor(*ABSENT.get(architecture, ()))
    return gguf.read_spec(metadata, tensors, source="x.gguf")


def read_config(
    kind: str, changes: Mapping[str, object], rope: Mapping[str, object] | None = None
) -> ModelSpec:
    """The description of a checkpoint with some keys of its config, and of its rotary settings, changed."""
    values = CONFIG | {"rope_parameters": ROPE | (rope or {})}
    values |= OF_MODEL_TYPE.get(kind, {}) | changes
    if CLASSES[kind].endswith("ForConditionalGeneration"):
        values = {"model_type": kind, "text_config": {"model_type": "mistral"} | values}
    family = CHECKPOINT_FAMILIES[kind]
    assert family.read_checkpoint is not None
    config = Fields(values, source="config.json")
    tensors = EveryTensor(*ABSENT.get(kind, ()))
    return family.read_checkpoint(CheckpointHeader(family.name, config, tensors))
