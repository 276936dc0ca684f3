"""Small llama models with random weights in any weight format, as GGUF files."""

from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.fakes.tiny_gguf import model_fields, write_gguf
from tests.fakes.tiny_vocabulary import byte_level_fields

HIDDEN, FFN, LAYERS = 256, 512, 2
SPREAD = 0.06
"""Approximate standard deviation of a weight."""
MEASURED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]
"""Formats that the gguf package can quantize to; the others get random codes and fixed scales."""

# Format → byte offset of each f16 scale in a block → its value, chosen so that weights have mean 0 and
# standard deviation SPREAD: weight = code × 6- or 8-bit scale − minimum × its scale.
RANDOM = {
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


def write_model(path: Path, dtype: str) -> Path:
    """Write a model whose matrices have the format `dtype`; deterministic for a format."""
    vocabulary = byte_level_fields()
    tokens = vocabulary["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    fields = model_fields() | vocabulary | {
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": FFN,
        "llama.block_count": LAYERS,
        "llama.context_length": 256,
        "llama.vocab_size": len(tokens),
    }  # fmt: skip
    shapes = {"token_embd.weight": (len(tokens), HIDDEN)}
    for layer in range(LAYERS):
        block = {
            "attn_q": (HIDDEN, HIDDEN), "attn_k": (HIDDEN // 2, HIDDEN),
            "attn_v": (HIDDEN // 2, HIDDEN), "attn_output": (HIDDEN, HIDDEN),
            "ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN), "ffn_down": (HIDDEN, FFN),
        }  # fmt: skip
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
    norms = ["output_norm", *(f"blk.{i}.{n}_norm" for i in range(LAYERS) for n in ("attn", "ffn"))]
    rng = np.random.default_rng(7)
    tensors = {name: weights(dtype, shape, rng) for name, shape in shapes.items()}
    kinds = dict.fromkeys(tensors, gguf.GGMLQuantizationType[dtype])
    ones = {f"{name}.weight": np.ones(HIDDEN, np.float32) for name in norms}
    return write_gguf(path, fields, tensors | ones, dtypes=kinds)
