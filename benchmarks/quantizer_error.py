"""The error of weights quantized at load, beside that of ggml's own quantizer on the same weights.

    python benchmarks/quantizer_error.py --ggml LIBGGML_BASE.so [--model FILE] [--json FILE]

Reported for each set of weights and type: root mean square error ÷ root mean square of the weights, and its
ratio to ggml's (`ggml_quantize_chunk` without an importance matrix). The sets are random: Gaussian, and
Student's t with four degrees of freedom, whose tails are heavy. FILE adds those of a model: a safetensors
file with float weights.
"""

import argparse
import ctypes
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import write_result
from engine import _core

TYPES = ["Q8_0", "Q4_1", "Q4_K", "Q6_K"]
ROWS, COLS = 512, 2048


@dataclass(frozen=True, slots=True)
class Row:
    """The errors of a type on a set of weights, relative to the weights' root mean square."""

    weights: str
    dtype: str
    ours: float
    ggml: float


def ggml_quantize(
    library: ctypes.CDLL, weights: NDArray[np.float32], kind: gguf.GGMLQuantizationType
) -> NDArray[np.uint8]:
    """The blocks that ggml makes of the rows."""
    length, size = gguf.GGML_QUANT_SIZES[kind]
    rows, cols = weights.shape
    blocks = np.empty((rows, cols // length * size), np.uint8)
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    written = library.ggml_quantize_chunk(
        ctypes.c_int(kind.value),
        weights.ctypes.data_as(ctypes.c_void_p),
        blocks.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(0),
        ctypes.c_int64(rows),
        ctypes.c_int64(cols),
        None,
    )
    if written != blocks.nbytes:
        raise SystemExit(f"ggml wrote {written} bytes of {kind.name}, not {blocks.nbytes}")
    return blocks


def relative_error(
    weights: NDArray[np.float32], blocks: NDArray[np.uint8], kind: gguf.GGMLQuantizationType
) -> float:
    """Of blocks, compared with the weights that they were made of."""
    off = gguf.quants.dequantize(blocks, kind).astype(np.float64) - weights
    return float(np.sqrt(np.mean(off**2) / np.mean(weights.astype(np.float64) ** 2)))


def sets_of(model: Path | None) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Named matrices."""
    rng = np.random.default_rng(1)
    yield "Gaussian", (0.02 * rng.standard_normal((ROWS, COLS))).astype(np.float32)
    yield "Student's t, 4", (0.02 * rng.standard_t(4, (ROWS, COLS))).astype(np.float32)
    if model is not None:
        matrices = [m for m in load_file(model).values() if m.ndim == 2 and len(m) > 16]
        by_length: dict[int, list[NDArray[np.float32]]] = {}
        for matrix in matrices:
            by_length.setdefault(matrix.shape[1], []).append(matrix.astype(np.float32))
        for length, rows in by_length.items():
            yield f"{model.parent.name}, rows of {length}", np.concatenate(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ggml", type=Path, required=True, help="ggml's library, libggml-base.so")
    parser.add_argument("--model", type=Path, help="a safetensors file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    library = ctypes.CDLL(str(options.ggml))
    rows = []
    for name, weights in sets_of(options.model):
        for dtype in TYPES:
            kind = gguf.GGMLQuantizationType[dtype]
            if weights.shape[1] % gguf.GGML_QUANT_SIZES[kind][0]:
                continue
            ours = relative_error(weights, _core.quantize(weights, dtype), kind)
            theirs = relative_error(weights, ggml_quantize(library, weights, kind), kind)
            rows.append(Row(name, dtype, ours, theirs))
    table = Table()
    for heading in ("weights", "type"):
        table.add_column(heading)
    for heading in ("error", "ggml's", "÷ ggml's"):
        table.add_column(heading, justify="right")
    for row in rows:
        figures = (f"{row.ours:.5f}", f"{row.ggml:.5f}", f"{row.ours / row.ggml:.3f}")
        table.add_row(row.weights, row.dtype, *figures)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if options.json:
        write_result(options.json, {"rows": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
