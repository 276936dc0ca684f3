"""Tiny random models of the families with recurrent mixers."""

import torch
from transformers import (
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    NemotronHConfig,
    NemotronHForCausalLM,
    PreTrainedModel,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from tests.parity.tiny_models import SHAPE, TinyModel, rope_parameters

_HYBRID = {**SHAPE, "num_hidden_layers": 4}
_EXPERTS: dict[str, object] = {"num_experts_per_tok": 3}


def _lfm2(**changes: object) -> PreTrainedModel:
    kinds = ["conv", "full_attention", "conv", "conv"]
    fields: dict[str, object] = {
        **_HYBRID,
        "layer_types": kinds,
        "rope_parameters": rope_parameters("default"),
    }
    return Lfm2ForCausalLM(Lfm2Config(**{**fields, **changes}))


def _qwen3_5(**changes: object) -> PreTrainedModel:
    kinds = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
    fields: dict[str, object] = {
        **_HYBRID,
        "layer_types": kinds,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        "rope_parameters": rope_parameters(
            "default", partial_rotary_factor=0.25, mrope_section=[2, 1, 1], mrope_interleaved=True
        ),
    }
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**{**fields, **changes}))


def _qwen3_next(**changes: object) -> PreTrainedModel:
    kinds = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
    fields: dict[str, object] = {
        **_HYBRID,
        **_EXPERTS,
        "layer_types": kinds,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "num_experts": 10,
        "moe_intermediate_size": 48,
        "shared_expert_intermediate_size": 80,
        "rope_parameters": rope_parameters("default", partial_rotary_factor=0.25),
    }
    return Qwen3NextForCausalLM(Qwen3NextConfig(**{**fields, **changes}))


def _granite_hybrid(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **_HYBRID,
        "layer_types": ["mamba", "attention", "mamba", "mamba"],
        "mamba_n_heads": 8,
        "mamba_d_head": 24,
        "mamba_n_groups": 1,
        "mamba_d_state": 16,
        "mamba_expand": 2,
        "num_local_experts": 0,
        "shared_intermediate_size": 112,
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.4,
        "attention_multiplier": 0.2,
        "logits_scaling": 2.0,
        "rope_parameters": rope_parameters("default"),
    }
    return GraniteMoeHybridForCausalLM(GraniteMoeHybridConfig(**{**fields, **changes}))


def _nemotron_h(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **SHAPE,
        "layers_block_type": [
            "linear_attention",
            "mlp",
            "full_attention",
            "mlp",
            "linear_attention",
        ],
        "head_dim": 16,
        "mamba_num_heads": 8,
        "mamba_head_dim": 24,
        "n_groups": 2,
        "ssm_state_size": 16,
        # transformers applies it to prompts and not to single tokens; no published model has another limit.
        "time_step_min": 1e-9,
    }
    del fields["num_hidden_layers"]
    return NemotronHForCausalLM(NemotronHConfig(**{**fields, **changes}))


def _nemotron_experts() -> PreTrainedModel:
    model = _nemotron_h(
        **_EXPERTS,
        layers_block_type=["linear_attention", "moe", "full_attention", "moe", "linear_attention"],
        n_routed_experts=8,
        moe_intermediate_size=48,
        moe_shared_expert_intermediate_size=80,
        routed_scaling_factor=1.5,
    )
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.copy_(torch.rand(buffer.shape) * 0.2)
    return model


TINY_RECURRENT = [
    TinyModel("lfm2", _lfm2),
    TinyModel("lfm2-biased", lambda: _lfm2(conv_bias=True, conv_L_cache=4)),
    TinyModel("qwen3_5", _qwen3_5),
    TinyModel(
        "qwen3_5-one-value-each",
        lambda: _qwen3_5(
            linear_num_key_heads=4, linear_num_value_heads=4, tie_word_embeddings=True
        ),
    ),
    TinyModel("granite-hybrid", lambda: _granite_hybrid(position_embedding_type="rope")),
    TinyModel("granite-hybrid-without-rope", lambda: _granite_hybrid(mamba_n_groups=2)),
    TinyModel("nemotron_h", _nemotron_h),
    TinyModel("qwen3next", _qwen3_next),
    TinyModel(
        "qwen3next-dense-layers-biased",
        lambda: _qwen3_next(mlp_only_layers=[1], norm_topk_prob=False, linear_value_head_dim=24),
    ),
    TinyModel(
        "granite-hybrid-experts",
        lambda: _granite_hybrid(
            **_EXPERTS, num_local_experts=8, intermediate_size=48, shared_intermediate_size=80
        ),
    ),
    TinyModel("nemotron_h-experts", _nemotron_experts),
]
