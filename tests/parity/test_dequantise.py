"""Dequantisation equals that of ggml's Python package bit for bit, in every format."""

from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from engine._core import GgufFile

ROWS, COLS = 7, 512
QUANTIZED = [
    *("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "IQ4_XS", "MXFP4"),
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
]
QUANTIZABLE = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4"]
"""Formats that the package can quantize to; the others get random bytes."""

F16_FIELDS = {
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "MXFP4": [],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}
"""Byte offsets of the f16 scales in a block."""


def write(path: Path, rows: NDArray[np.generic], dtype: str) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("w", rows, raw_dtype=gguf.GGMLQuantizationType[dtype])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def random_blocks(dtype: str, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Rows of blocks of random bytes, except for scales in [-2, 2)."""
    length, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[dtype]]
    blocks = rng.integers(0, 256, (ROWS * COLS // length, size), np.uint8)
    for at in F16_FIELDS[dtype]:
        scales = rng.uniform(-2, 2, len(blocks)).astype("<f2")
        blocks[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def ours(path: Path, dtype: str) -> NDArray[np.float32]:
    file = GgufFile(path)
    assert [(tensor.shape, tensor.dtype) for tensor in file.tensors] == [((ROWS, COLS), dtype)]
    return file.dequantize("w")


@pytest.mark.parametrize("dtype", QUANTIZED)
def test_random_blocks(dtype: str, tmp_path: Path) -> None:
    rows = random_blocks(dtype, np.random.default_rng(0))
    write(tmp_path / "w.gguf", rows, dtype)
    expected = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[dtype])
    np.testing.assert_array_equal(ours(tmp_path / "w.gguf", dtype), expected)


@pytest.mark.parametrize("dtype", QUANTIZABLE)
def test_quantised_weights(dtype: str, tmp_path: Path) -> None:
    kind = gguf.GGMLQuantizationType[dtype]
    weights = np.random.default_rng(1).standard_normal((ROWS, COLS)).astype(np.float32)
    rows = gguf.quants.quantize(weights, kind)
    write(tmp_path / "w.gguf", rows, dtype)
    expected = gguf.quants.dequantize(rows, kind)
    np.testing.assert_array_equal(ours(tmp_path / "w.gguf", dtype), expected)
    # Both implementations could be wrong alike, so the values are also compared with the weights.
    # MXFP4's largest values are 4 and 6 times its scale: 6 may be three quarters of the largest weight.
    assert np.abs(expected - weights).max() < (1.0 if dtype == "MXFP4" else 0.6)
