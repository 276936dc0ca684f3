"""Tiny random models of many architectures, saved by transformers."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from tests.fakes.tiny_checkpoint import CHATML, tiny_encoder

VOCAB = 272
CONTEXT = 128
WINDOW = 12
"""Shorter than the tests' sequences, longer than a block."""

COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "initializer_range": 0.3,  # large enough that attention decides the tokens
}
_MIXED = ["sliding_attention", "full_attention", "sliding_attention"]

TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": (
        "gpt2",
        {
            "vocab_size": VOCAB,
            "n_embd": 32,
            "n_layer": 3,
            "n_head": 4,
            "n_positions": CONTEXT,
            "initializer_range": 0.3,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    "llama": ("llama", {}),
    "mistral": ("mistral", {"sliding_window": WINDOW, "head_dim": 8}),
    "qwen2": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
    ),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "gemma2": (
        "gemma2",
        {
            "head_dim": 8,
            "sliding_window": WINDOW,
            "layer_types": _MIXED,
            "attn_logit_softcapping": 2.0,
            "query_pre_attn_scalar": 16,
        },
    ),
    "gemma3": (
        "gemma3_text",
        {
            "head_dim": 16,
            "sliding_window": WINDOW,
            "layer_types": _MIXED,
            "query_pre_attn_scalar": 16,
        },
    ),
    "gemma4": (
        "gemma4_text",
        {
            "head_dim": 8,
            "global_head_dim": 16,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "num_kv_shared_layers": 0,
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": VOCAB,
        },
    ),
    "phi3": ("phi3", {}),
    "mixtral": ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "opt": ("opt", {"ffn_dim": 48, "word_embed_proj_dim": 32, "init_std": 0.3}),
    "gpt_oss": (
        "gpt_oss",
        {
            "head_dim": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": WINDOW,
            "layer_types": _MIXED,
        },
    ),
    "deepseek_v3": (
        "deepseek_v3",
        {
            "num_key_value_heads": 4,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 12,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "first_k_dense_replace": 1,
        },
    ),
}
"""Name → (model_type, what its config sets beside or instead of the common fields)."""


def tiny_hf_config(name: str, **changes: Any) -> Any:
    """A transformers configuration."""
    model_type, fields = TINY[name]
    common = {} if model_type == "gpt2" else COMMON
    return CONFIG_MAPPING[model_type](**(common | fields | changes))


def tiny_hf_model(name: str, *, seed: int = 0, **changes: Any) -> Any:
    """A random model under transformers' own attention; sdpa where it can."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(
            tiny_hf_config(name, **changes), dtype=torch.float32
        )
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:  # biases, sinks and norms start as constants
                    parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def write_tokenizer(directory: Path) -> None:
    """The tiny byte-level vocabulary, with a chat template."""
    (directory / "tokenizer.json").write_text(tiny_encoder().to_str())
    settings = {"eos_token": "<|im_end|>", "chat_template": CHATML}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def save_tiny(directory: Path, model: Any) -> Path:
    """Save a model and the tiny tokenizer."""
    model.save_pretrained(directory)
    write_tokenizer(directory)
    return directory


def greedy(model: Any, prompt: list[int], count: int) -> list[int]:
    """Greedy tokens of transformers' `generate`, without early stop."""
    output = model.generate(
        torch.tensor([prompt]),
        max_new_tokens=count,
        min_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return output[0, len(prompt) :].tolist()
