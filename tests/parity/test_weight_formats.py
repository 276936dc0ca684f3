"""Every weight format against transformers in fp32 on the same weights, dequantised by ggml's package."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.fakes.tiny_gguf import model_fields, write_gguf
from tests.fakes.tiny_vocabulary import byte_level_fields
from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, llama_from_gguf
from tests.parity.stepper import Run

HIDDEN, FFN, LAYERS = 256, 512, 2
SPREAD = 0.06
"""Standard deviation of a weight, about."""
ROWS, TOKENS = 4, 100
PERPLEXITY_BOUND = 0.005
MEASURED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]
"""Formats the package can make; the others get random codes under chosen scales."""

# Byte offsets of a block's f16 scales and what they are, so that weights spread as they should
# around zero: a code times its six- or eight-bit scale, minus the minimum times its own.
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


@pytest.mark.parametrize("dtype", [*MEASURED, *RANDOM])
def test_48_perplexity_is_that_of_the_weights_in_every_format(dtype: str, tmp_path: Path) -> None:
    """Over what the model itself writes, drawn at temperature 1."""
    path = write_model(tmp_path / "tiny.gguf", dtype)
    stepper = load_stepper(path, rows=ROWS)
    assert dtype in stepper.executor.info.weight_format
    drawn = {"temperature": 1.0, "num_logprobs": 0}
    runs = [Run([5 + row], TOKENS, sampling={**drawn, "seed": row}) for row in range(ROWS)]
    stepper.run(runs)
    stepper.executor.close()
    reference = llama_from_gguf(path)
    losses = []
    for run in runs:
        exact = torch.log_softmax(
            torch.from_numpy(answer_logits(reference, run.prompt, run.tokens)), -1
        ).numpy()
        losses.append((run.logprobs, exact[np.arange(TOKENS), run.tokens]))
    ours, theirs = -np.array(losses).mean((0, 2))
    print(f"{dtype}: perplexity {np.exp(theirs):.2f}, × {np.exp(ours - theirs):.5f}")
    assert 2 < np.exp(theirs) < 0.8 * reference.config.vocab_size  # it has something to say
    assert abs(np.exp(ours - theirs) - 1) <= PERPLEXITY_BOUND
