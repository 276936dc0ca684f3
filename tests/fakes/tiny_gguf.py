"""Tiny random GGUF models, written with the reference `gguf` package."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from tests.fakes.tiny_vocabulary import byte_level_fields

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN, CONTEXT = 32, 2, 4, 2, 8, 64, 128


def model_fields(architecture: str = "llama") -> dict[str, object]:
    """GGUF metadata with the shapes of a tiny model."""
    values: dict[str, object] = {
        "block_count": LAYERS,
        "context_length": CONTEXT,
        "embedding_length": HIDDEN,
        "feed_forward_length": FFN,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }
    return {"general.architecture": architecture} | {
        f"{architecture}.{key}": value for key, value in values.items()
    }


def model_shapes(architecture: str, vocab_size: int, *, tied: bool) -> dict[str, tuple[int, ...]]:
    """Tensor names and shapes, slowest dimension first, of a tiny model."""
    queries, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (vocab_size, HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    if not tied:
        shapes["output.weight"] = (vocab_size, HIDDEN)
    for layer in range(LAYERS):
        block: dict[str, tuple[int, ...]] = {
            "attn_norm.weight": (HIDDEN,),
            "attn_q.weight": (queries, HIDDEN),
            "attn_k.weight": (keys, HIDDEN),
            "attn_v.weight": (keys, HIDDEN),
            "attn_output.weight": (HIDDEN, queries),
            "ffn_norm.weight": (HIDDEN,),
            "ffn_gate.weight": (FFN, HIDDEN),
            "ffn_up.weight": (FFN, HIDDEN),
            "ffn_down.weight": (HIDDEN, FFN),
        }
        if architecture == "qwen2":
            block |= {"attn_q.bias": (queries,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
        if architecture == "qwen3":
            block |= {"attn_q_norm.weight": (HEAD_DIM,), "attn_k_norm.weight": (HEAD_DIM,)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    return shapes


def write_gguf(
    path: Path,
    fields: Mapping[str, object],
    tensors: Mapping[str, np.ndarray],
    *,
    dtypes: Mapping[str, gguf.GGMLQuantizationType] | None = None,
    max_tensors: int = 0,
) -> Path:
    """Write metadata (None omits a key) and tensors, and return the path of the (first) file.

    Args:
        path: the file, or with `max_tensors` the name of the parts without their numbers.
        fields: metadata.
        tensors: arrays by name.
        dtypes: formats of quantised tensors by name.
        max_tensors: split the model into files of so many tensors; 0 writes one file.
    """
    architecture = str(fields["general.architecture"])
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=max_tensors)
    for key, value in fields.items():
        if key == "general.architecture" or value is None:
            continue
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, value)
    for name, array in tensors.items():
        writer.add_tensor(name, array, raw_dtype=(dtypes or {}).get(name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    files = writer.format_shard_names(path)
    writer.close()
    return files[0]


def write_tiny_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    tied: bool = True,
    seed: int = 0,
    fields: Mapping[str, object] | None = None,
    extra_tensors: Mapping[str, np.ndarray] | None = None,
    max_tensors: int = 0,
) -> Path:
    """A model of two layers with random F32 weights.

    `fields` overrides metadata; for `max_tensors` see `write_gguf`.
    """
    metadata = model_fields(architecture) | byte_level_fields() | dict(fields or {})
    tokens = metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    random = np.random.default_rng(seed)
    tensors = {
        name: np.ones(shape, np.float32)
        if "norm" in name
        else random.normal(0, 0.3, shape).astype(np.float32)
        for name, shape in model_shapes(architecture, len(tokens), tied=tied).items()
    }
    return write_gguf(path, metadata, tensors | dict(extra_tensors or {}), max_tensors=max_tensors)
