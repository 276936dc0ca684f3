"""Tiny Hugging Face model directories: config.json, safetensors, tokenizer.json."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tests.fakes.tiny_vocabulary import CHATML, CONTROLS, byte_level

CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}


def vocab_size() -> int:
    """Tokens of the tiny vocabulary."""
    return len(byte_level()[0])


def tiny_config(architecture: str = "llama", **changes: Any) -> dict[str, Any]:
    """A config.json; a change to None leaves the key out."""
    config: dict[str, Any] = {
        "architectures": [CLASSES[architecture]],
        "model_type": architecture,
        "hidden_act": "silu",
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "vocab_size": vocab_size(),
        "eos_token_id": 0,
    }
    return {key: value for key, value in (config | changes).items() if value is not None}


def tiny_tensors(architecture: str = "llama", *, tied: bool = True) -> dict[str, np.ndarray]:
    """The tensors of `tiny_config`, zeros."""
    hidden, keys, inner = 16, 8, 32
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocab_size(), hidden),
        "model.norm.weight": (hidden,),
    }
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (hidden, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, hidden),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    if architecture == "qwen2":
        layer |= {
            "self_attn.q_proj.bias": (hidden,),
            "self_attn.k_proj.bias": (keys,),
            "self_attn.v_proj.bias": (keys,),
        }
    if architecture == "qwen3":
        layer |= {"self_attn.q_norm.weight": (4,), "self_attn.k_norm.weight": (4,)}
    for index in range(2):
        shapes |= {f"model.layers.{index}.{name}": shape for name, shape in layer.items()}
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    if not tied:
        tensors["lm_head.weight"] = np.zeros((vocab_size(), hidden), np.float16)
    return tensors


def tiny_encoder() -> Tokenizer:
    """The tiny byte-level vocabulary as a `tokenizers` object."""
    tokens, merges, _ = byte_level()
    pairs = [tuple(merge.split(" ")) for merge in merges]
    encoder = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    encoder.decoder = decoders.ByteLevel()
    encoder.add_tokens([AddedToken(text, special=True, normalized=False) for text in CONTROLS])
    return encoder


def write_checkpoint(
    directory: Path,
    *,
    config: dict[str, Any] | None = None,
    shards: int = 1,
    tied: bool = True,
    settings: dict[str, Any] | None = None,
    files: dict[str, str] | None = None,
) -> Path:
    """Write a model directory; `files` adds or replaces text files."""
    directory.mkdir(parents=True, exist_ok=True)
    architecture = str((config or {}).get("model_type", "llama"))
    tensors = tiny_tensors(architecture, tied=tied)
    if shards == 1:
        save_file(tensors, directory / "model.safetensors")
    else:
        weight_map = {}
        for number in range(1, shards + 1):
            shard = f"model-{number:05d}-of-{shards:05d}.safetensors"
            part = dict(list(tensors.items())[number - 1 :: shards])
            save_file(part, directory / shard)
            weight_map |= dict.fromkeys(part, shard)
        index = {"metadata": {}, "weight_map": weight_map}
        (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    (directory / "config.json").write_text(json.dumps(config or tiny_config()))
    (directory / "tokenizer.json").write_text(tiny_encoder().to_str())
    described = settings or {"eos_token": "<|im_end|>", "chat_template": CHATML}
    (directory / "tokenizer_config.json").write_text(json.dumps(described))
    for name, text in (files or {}).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory
