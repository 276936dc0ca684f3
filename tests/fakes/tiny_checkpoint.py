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


def tiny_tensors(*, tied: bool = True) -> dict[str, np.ndarray]:
    """Enough tensors to open a model (not to run it)."""
    tensors = {"model.embed_tokens.weight": np.zeros((vocab_size(), 16), np.float32)}
    if not tied:
        tensors["lm_head.weight"] = np.zeros((vocab_size(), 16), np.float16)
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
    tensors = tiny_tensors(tied=tied)
    if shards == 1:
        save_file(tensors, directory / "model.safetensors")
    else:
        weight_map = {}
        for number, (name, array) in enumerate(tensors.items(), 1):
            shard = f"model-{number:05d}-of-{len(tensors):05d}.safetensors"
            save_file({name: array}, directory / shard)
            weight_map[name] = shard
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
