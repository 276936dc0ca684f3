"""Tiny random models of the families beyond Llama and Qwen; every kind of layer of a family occurs."""

from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3nForCausalLM,
    Gemma3nTextConfig,
    Gemma3TextConfig,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    Glm4Config,
    Glm4ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    Ministral3Config,
    Ministral3ForCausalLM,
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    Olmo2Config,
    Olmo2ForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedModel,
    SmolLM3Config,
    SmolLM3ForCausalLM,
    StableLmConfig,
    StableLmForCausalLM,
)

from tests.parity.tiny_models import CONTEXT, SHAPE, VOCAB, TinyModel, rope_parameters

WINDOW = 20
"""Shorter than most prompts of the tests."""

_YARN = rope_parameters(
    "yarn",
    factor=4.0,
    original_max_position_embeddings=64,
    beta_fast=16.0,
    beta_slow=1.0,
    mscale=1.0,
    mscale_all_dim=0.8,
    llama_4_scaling_beta=0.1,
)
_DUAL_ROPE = {
    "full_attention": {"rope_type": "linear", "rope_theta": 50_000.0, "factor": 2.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
}


def _phi3(original: int, **changes: object) -> PreTrainedModel:
    pairs = 6
    fields: dict[str, object] = {
        **SHAPE,
        "original_max_position_embeddings": original,
        "rope_parameters": rope_parameters(
            "longrope",
            partial_rotary_factor=0.75,
            short_factor=[1.0 + 0.1 * pair for pair in range(pairs)],
            long_factor=[1.5 + 0.5 * pair for pair in range(pairs)],
        ),
    }
    return Phi3ForCausalLM(Phi3Config(**{**fields, **changes}))


def _gemma3(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **SHAPE,
        "num_hidden_layers": 7,
        "head_dim": 24,
        "sliding_window": WINDOW,
        "query_pre_attn_scalar": 24,
        "rope_parameters": _DUAL_ROPE,
    }
    return Gemma3ForCausalLM(Gemma3TextConfig(**{**fields, **changes}))


def _gemma3_with_images() -> PreTrainedModel:
    text = {**SHAPE, "num_hidden_layers": 6, "head_dim": 16, "sliding_window": WINDOW}
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    return Gemma3ForConditionalGeneration(
        Gemma3Config(text_config=text, vision_config=vision, image_token_index=VOCAB - 1)
    )


def _mistral3_with_images() -> PreTrainedModel:
    text = {**SHAPE, "model_type": "ministral3", "head_dim": 16, "rope_parameters": _YARN}
    vision = {
        "model_type": "pixtral",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 8,
        "image_size": 28,
        "patch_size": 14,
    }
    return Mistral3ForConditionalGeneration(
        Mistral3Config(
            text_config=text,
            vision_config=vision,
            image_token_index=VOCAB - 1,
            tie_word_embeddings=False,
        )
    )


def _gemma4(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **SHAPE,
        "num_hidden_layers": 7,
        "head_dim": 16,
        "global_head_dim": 32,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2
        + ["full_attention"],
        "hidden_size_per_layer_input": 16,
        "vocab_size_per_layer_input": VOCAB,
        "final_logit_softcapping": 30.0,
    }
    return Gemma4ForCausalLM(Gemma4TextConfig(**{**fields, **changes}))


def _gemma4_experts() -> PreTrainedModel:
    return _gemma4(
        enable_moe_block=True,
        num_experts=10,
        top_k_experts=3,
        moe_intermediate_size=48,
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
    )


def _gemma3n(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        **SHAPE,
        "num_hidden_layers": 7,
        "intermediate_size": [112, 112, 128, 128, 112, 112, 128],
        "head_dim": 16,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2
        + ["full_attention"],
        "hidden_size_per_layer_input": 16,
        # Some tokens have no embeddings of the layers.
        "vocab_size_per_layer_input": VOCAB - 20,
        "num_kv_shared_layers": 3,
        "laurel_rank": 24,
        "activation_sparsity_pattern": [0.9, 0.5, 0.0, 0.0, 0.3, 0.0, 0.0],
    }
    return Gemma3nForCausalLM(Gemma3nTextConfig(**{**fields, **changes}))


def _gpt2(**changes: object) -> PreTrainedModel:
    fields: dict[str, object] = {
        "vocab_size": VOCAB,
        "n_positions": CONTEXT,
        "n_embd": 96,
        "n_layer": 3,
        "n_head": 6,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    return GPT2LMHeadModel(GPT2Config(**{**fields, **changes}))


TINY_FAMILIES = [
    TinyModel("gemma3", _gemma3),
    TinyModel("gemma3-with-images", _gemma3_with_images),
    TinyModel(
        "gemma2",
        lambda: Gemma2ForCausalLM(
            Gemma2Config(
                **SHAPE,
                head_dim=16,
                sliding_window=WINDOW,
                query_pre_attn_scalar=16,
                attn_logit_softcapping=5.0,
                final_logit_softcapping=8.0,
                attn_implementation="eager",
                rope_parameters=rope_parameters("default"),
            )
        ),
    ),
    TinyModel("gemma4", lambda: _gemma4(num_kv_shared_layers=3, use_double_wide_mlp=True)),
    TinyModel(
        "gemma4-keys-are-values",
        lambda: _gemma4(
            attention_k_eq_v=True, num_global_key_value_heads=1, hidden_size_per_layer_input=0
        ),
    ),
    TinyModel("gemma4-experts", _gemma4_experts),
    TinyModel("gemma3n", _gemma3n),
    TinyModel(
        "gemma3n-second-stream",
        lambda: _gemma3n(altup_active_idx=1, altup_num_inputs=3, altup_correct_scale=False),
    ),
    # Every sequence of the tests is longer than 32 tokens and none is longer than 256.
    TinyModel("phi3-long", lambda: _phi3(32)),
    TinyModel("phi3-short", lambda: _phi3(CONTEXT)),
    TinyModel(
        "phi3-window",
        lambda: _phi3(CONTEXT, sliding_window=WINDOW, rope_parameters=rope_parameters("default")),
    ),
    TinyModel(
        "smollm3",
        lambda: SmolLM3ForCausalLM(
            SmolLM3Config(
                **{**SHAPE, "num_hidden_layers": 5}, rope_parameters=rope_parameters("default")
            )
        ),
    ),
    TinyModel(
        "granite",
        lambda: GraniteForCausalLM(
            GraniteConfig(
                **SHAPE,
                embedding_multiplier=2.5,
                residual_multiplier=0.6,
                attention_multiplier=0.15,
                logits_scaling=3.0,
                tie_word_embeddings=True,
                rope_parameters=rope_parameters("default"),
            )
        ),
    ),
    TinyModel(
        "olmo2",
        lambda: Olmo2ForCausalLM(Olmo2Config(**SHAPE, rope_parameters=rope_parameters("default"))),
    ),
    TinyModel(
        "olmo3",
        lambda: Olmo3ForCausalLM(
            Olmo3Config(
                **{**SHAPE, "num_hidden_layers": 5},
                sliding_window=WINDOW,
                rope_parameters={
                    "full_attention": rope_parameters(
                        "yarn", factor=4.0, original_max_position_embeddings=64
                    ),
                    "sliding_attention": rope_parameters("default"),
                },
            )
        ),
    ),
    TinyModel(
        "ministral3",
        lambda: Ministral3ForCausalLM(
            Ministral3Config(**SHAPE, head_dim=16, rope_parameters=_YARN)
        ),
    ),
    TinyModel("mistral3-with-images", _mistral3_with_images),
    TinyModel(
        "gpt2",
        _gpt2,
    ),
    TinyModel("gpt2-scaled-layers", lambda: _gpt2(scale_attn_by_inverse_layer_idx=True)),
    TinyModel(
        "glm4",
        lambda: Glm4ForCausalLM(
            Glm4Config(
                **SHAPE,
                head_dim=16,
                attention_bias=True,
                rope_parameters=rope_parameters("default", partial_rotary_factor=0.5),
            )
        ),
    ),
    TinyModel(
        "stablelm",
        lambda: StableLmForCausalLM(
            StableLmConfig(
                **{**SHAPE, "num_attention_heads": 4, "num_key_value_heads": 2},
                use_qkv_bias=True,
                rope_parameters=rope_parameters("default", partial_rotary_factor=0.25),
            )
        ),
    ),
]
