"""Tiny random models of every architecture, built by transformers and saved as checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCAB = 512
CONTEXT = 256

SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 96,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}


def rope_parameters(kind: str, **fields: object) -> dict[str, object]:
    """transformers' `rope_parameters` with base 10,000."""
    return {"rope_type": kind, "rope_theta": 10000.0, **fields}


@dataclass(frozen=True)
class TinyModel:
    """A model's name and constructor."""

    name: str
    make: Callable[[], PreTrainedModel]


def _llama(**changes: object) -> PreTrainedModel:
    fields = {**SHAPE, "head_dim": 16, "rope_parameters": rope_parameters("default"), **changes}
    return LlamaForCausalLM(LlamaConfig(**fields))


TINY_MODELS = [
    TinyModel("llama", lambda: _llama(tie_word_embeddings=True)),
    TinyModel("llama-untied-biased", lambda: _llama(attention_bias=True, mlp_bias=True)),
    TinyModel("llama-odd-heads", lambda: _llama(head_dim=24, num_attention_heads=4)),
    TinyModel(
        "llama-linear", lambda: _llama(rope_parameters=rope_parameters("linear", factor=4.0))
    ),
    TinyModel(
        "llama-llama3",
        lambda: _llama(
            rope_parameters=rope_parameters(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            )
        ),
    ),
    TinyModel(
        "llama-yarn",
        lambda: _llama(
            rope_parameters=rope_parameters("yarn", factor=4.0, original_max_position_embeddings=64)
        ),
    ),
    TinyModel(
        "mistral",
        lambda: MistralForCausalLM(
            MistralConfig(
                **SHAPE, head_dim=16, sliding_window=20, rope_parameters=rope_parameters("default")
            )
        ),
    ),
    TinyModel(
        "qwen2",
        lambda: Qwen2ForCausalLM(
            Qwen2Config(
                **{**SHAPE, "num_attention_heads": 4},
                tie_word_embeddings=True,
                rope_parameters=rope_parameters("default"),
            )
        ),
    ),
    TinyModel(
        "qwen3",
        lambda: Qwen3ForCausalLM(
            Qwen3Config(**SHAPE, head_dim=32, rope_parameters=rope_parameters("default"))
        ),
    ),
]


def save_tiny_model(tiny: TinyModel, directory: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Write a checkpoint of `dtype` and return the same weights as an fp32 model.

    Weights are large enough for sharp distributions, and norms and biases are random, so that
    omitting one changes the output.
    """
    torch.manual_seed(len(tiny.name))
    model = tiny.make().to(torch.float32)
    randomize(model)
    model.to(dtype).save_pretrained(directory)
    # Loaded from the checkpoint: `to(dtype)` has rounded this model's RoPE frequencies as well.
    return type(model).from_pretrained(directory, dtype=torch.float32).eval()


def randomize(model: PreTrainedModel) -> None:
    """Random weights, as `save_tiny_model` describes."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # The last two are Gemma 4's.
            if "norm" in name or ".ln_" in name or "router.scale" in name or "expert_scale" in name:
                weight.uniform_(0.5, 1.5)
            elif weight.dim() == 1:
                weight.normal_(0, 0.5)
            else:
                weight.normal_(0, 0.25)
        for name, buffer in model.named_buffers():
            if "layer_scalar" in name:  # Gemma 4's factor of a layer's result
                buffer.uniform_(0.5, 1.5)
