"""Small models with random weights in any weight format and architecture, as GGUF files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.fakes.tiny_gguf import HEADS, KV_HEADS, model_fields, write_gguf
from tests.fakes.tiny_vocabulary import byte_level_fields

HIDDEN, FFN, LAYERS = 256, 512, 2
HEAD_DIM = HIDDEN // HEADS
KV_WIDTH = KV_HEADS * HEAD_DIM
SPREAD = 0.06
"""Approximate standard deviation of a weight."""
MEASURED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4"]
"""Formats that the gguf package can quantize to; the others get random codes and fixed scales."""

# Format → byte offset of each f16 scale in a block → its value, chosen so that weights have mean 0 and
# standard deviation SPREAD: weight = code × 6- or 8-bit scale − minimum × its scale.
RANDOM = {
    "IQ4_NL": {0: SPREAD / 69},
    "IQ4_XS": {0: SPREAD / 1276},
    "Q2_K": {80: SPREAD / 14, 82: 1.5 * SPREAD / 14},
    "Q3_K": {108: SPREAD / 43},
    "Q4_K": {0: SPREAD / 170, 2: 7.5 * SPREAD / 170},
    "Q5_K": {0: SPREAD / 350, 2: 15.5 * SPREAD / 350},
    "Q6_K": {208: SPREAD / 1400},
}


def weights(dtype: str, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.generic]:
    kind = gguf.GGMLQuantizationType[dtype]
    if dtype not in RANDOM:
        return gguf.quants.quantize(rng.normal(0, SPREAD, shape).astype(np.float32), kind)
    length, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (shape[0] * shape[1] // length, size), np.uint8)
    for at, scale in RANDOM[dtype].items():
        blocks[:, at : at + 2] = np.array([scale], "<f2").view(np.uint8)
    return blocks.reshape(shape[0], -1)


@dataclass(frozen=True, slots=True)
class Architecture:
    """What distinguishes the attention of a model.

    Attributes:
        name: in test ids.
        gguf: `general.architecture`; Mistral's files name llama.
        fields: metadata under that name, in addition to the shapes.
        biased: whether queries, keys and values have a bias.
        normed: whether queries and keys are normalised per head.
    """

    name: str
    gguf: str = "llama"
    fields: Mapping[str, object] = field(default_factory=dict)
    biased: bool = False
    normed: bool = False


LLAMA = Architecture("llama")
ARCHITECTURES = [
    LLAMA,
    Architecture("qwen2", "qwen2", biased=True),
    Architecture("qwen3", "qwen3", normed=True),
    Architecture("mistral", fields={"attention.sliding_window": 40}),
    Architecture(
        "yarn",
        fields={
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 64,
        },
    ),
]


def write_model(
    path: Path,
    dtype: str,
    architecture: Architecture = LLAMA,
    *,
    context: int = 256,
    hidden: int = HIDDEN,
    ffn: int = FFN,
    max_tensors: int = 0,
) -> Path:
    """Write a model whose matrices have the format `dtype`; deterministic for format and architecture.

    `max_tensors`: see `write_gguf`.
    """
    head_dim = hidden // HEADS
    kv_width = KV_HEADS * head_dim
    vocabulary = byte_level_fields()
    tokens = vocabulary["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    shapes = {
        "embedding_length": hidden,
        "feed_forward_length": ffn,
        "block_count": LAYERS,
        "context_length": context,
        "vocab_size": len(tokens),
    }
    own = {f"{architecture.gguf}.{name}": value for name, value in shapes.items()}
    own |= {f"{architecture.gguf}.{name}": value for name, value in architecture.fields.items()}
    rng = np.random.default_rng(7)
    tensors = {"token_embd.weight": weights(dtype, (len(tokens), hidden), rng)}
    for layer in range(LAYERS):
        block = {
            "attn_q": (hidden, hidden), "attn_k": (kv_width, hidden),
            "attn_v": (kv_width, hidden), "attn_output": (hidden, hidden),
            "ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden), "ffn_down": (hidden, ffn),
        }  # fmt: skip
        tensors |= {
            f"blk.{layer}.{name}.weight": weights(dtype, shape, rng)
            for name, shape in block.items()
        }
    kinds = dict.fromkeys(tensors, gguf.GGMLQuantizationType[dtype])
    tensors["output_norm.weight"] = np.ones(hidden, np.float32)
    for layer in range(LAYERS):
        vectors = {f"{name}_norm.weight": np.ones(hidden) for name in ("attn", "ffn")}
        if architecture.biased:
            widths = {"q": hidden, "k": kv_width, "v": kv_width}
            vectors |= {f"attn_{n}.bias": rng.normal(0, 0.5, width) for n, width in widths.items()}
        if architecture.normed:
            vectors |= {f"attn_{n}_norm.weight": rng.uniform(0.5, 1.5, head_dim) for n in "qk"}
        tensors |= {f"blk.{layer}.{n}": v.astype(np.float32) for n, v in vectors.items()}
    fields = model_fields(architecture.gguf) | vocabulary | own
    return write_gguf(path, fields, tensors, dtypes=kinds, max_tensors=max_tensors)
