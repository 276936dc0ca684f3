"""Tiny random models with experts."""

import torch
from transformers import (
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    GraniteMoeConfig,
    GraniteMoeForCausalLM,
    GraniteMoeSharedConfig,
    GraniteMoeSharedForCausalLM,
    Lfm2MoeConfig,
    Lfm2MoeForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    PreTrainedModel,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tests.parity.tiny_models import SHAPE, TinyModel, rope_parameters

WINDOW = 20


def _shape() -> dict[str, object]:
    """Configs change the rotary settings that they are given, so that each gets its own."""
    return {**SHAPE, "rope_parameters": rope_parameters("default"), "num_experts_per_tok": 3}


def _qwen3moe(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **_shape(),
        "head_dim": 16,
        "num_experts": 10,
        "moe_intermediate_size": 48,
        "mlp_only_layers": [1],
        "norm_topk_prob": True,
    }
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**{**fields, **changes}))


def _glm4moe(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **_shape(),
        "head_dim": 16,
        "n_routed_experts": 12,
        "moe_intermediate_size": 48,
        "n_shared_experts": 2,
        "n_group": 3,
        "topk_group": 2,
        "first_k_dense_replace": 1,
        "routed_scaling_factor": 1.5,
        "norm_topk_prob": True,
        "attention_bias": True,
        "use_qk_norm": True,
    }
    model = Glm4MoeForCausalLM(Glm4MoeConfig(**{**fields, **changes}))
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.copy_(torch.rand(buffer.shape) * 0.2)
    return model


def _gpt_oss() -> PreTrainedModel:
    rope = rope_parameters(
        "yarn",
        factor=4.0,
        original_max_position_embeddings=64,
        beta_fast=32.0,
        beta_slow=1.0,
        truncate=False,
    )
    fields: dict[str, object] = {
        **_shape(),
        "rope_parameters": rope,
        "head_dim": 16,
        "num_local_experts": 6,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    }
    return GptOssForCausalLM(GptOssConfig(**fields))


_GRANITE = {
    "num_local_experts": 8,
    "embedding_multiplier": 1.5,
    "residual_multiplier": 0.6,
    "attention_multiplier": 0.3,
    "logits_scaling": 2.0,
}


def _lfm2moe() -> PreTrainedModel:
    model = Lfm2MoeForCausalLM(
        Lfm2MoeConfig(
            **_shape(),
            layer_types=["conv", "full_attention", "conv"],
            num_dense_layers=1,
            num_experts=8,
            moe_intermediate_size=48,
            use_expert_bias=True,
            norm_topk_prob=True,
            routed_scaling_factor=1.5,
        )
    )
    for name, buffer in model.named_buffers():
        if name.endswith("expert_bias"):
            buffer.copy_(torch.rand(buffer.shape) * 0.2)
    return model


def _qwen35moe() -> PreTrainedModel:
    rope = rope_parameters(
        "default", partial_rotary_factor=0.25, mrope_section=[2, 1, 1], mrope_interleaved=True
    )
    fields: dict[str, object] = {
        **_shape(),
        "rope_parameters": rope,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        "num_experts": 10,
        "moe_intermediate_size": 48,
        "shared_expert_intermediate_size": 80,
    }
    return Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**fields))


TINY_EXPERTS = [
    TinyModel("qwen3moe", _qwen3moe),
    TinyModel("qwen3moe-as-is", lambda: _qwen3moe(norm_topk_prob=False, mlp_only_layers=[])),
    TinyModel(
        "mixtral",
        lambda: MixtralForCausalLM(
            MixtralConfig(**_shape(), num_local_experts=5, sliding_window=WINDOW)
        ),
    ),
    TinyModel("olmoe", lambda: OlmoeForCausalLM(OlmoeConfig(**_shape(), num_experts=9))),
    TinyModel(
        "granitemoe", lambda: GraniteMoeForCausalLM(GraniteMoeConfig(**_shape(), **_GRANITE))
    ),
    TinyModel(
        "granitemoeshared",
        lambda: GraniteMoeSharedForCausalLM(
            GraniteMoeSharedConfig(**_shape(), **_GRANITE, shared_intermediate_size=80)
        ),
    ),
    TinyModel("gpt-oss", _gpt_oss),
    TinyModel("glm4moe", _glm4moe),
    TinyModel("glm4moe-ungrouped", lambda: _glm4moe(n_group=1, topk_group=1)),
    TinyModel("lfm2moe", _lfm2moe),
    TinyModel("qwen35moe", _qwen35moe),
]
