"""Writes the shapes of `family_shapes.py` as GGUF files with random weights.

Matrices are written in Q8_0 and quantized from that by llama.cpp's own quantizer, as it would quantize a
published model: half the disk of F16, and as good for random weights. The experts of `mxfp4` files are
written in MXFP4, as published, and these files are not quantized further.
"""

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from benchmarks.family_shapes import Dims, FamilyShape
from benchmarks.machine import say
from benchmarks.recipes import DEMO
from benchmarks.shape_files import quantize
from benchmarks.synthetic_models import SPREAD, Bytes, add_tokenizer, q8_0

KEPT_IN_F32 = ("ssm_conv1d", "shortconv.conv", "ffn_gate_inp")
"""Matrices that converters leave in F32."""
Q8_0 = gguf.GGMLQuantizationType.Q8_0
MXFP4 = gguf.GGMLQuantizationType.MXFP4
F32 = gguf.GGMLQuantizationType.F32


def family_file(name: str, shape: FamilyShape, directory: Path, cache: Path) -> Path:
    """The shape's file, which is made if it does not exist.

    Args:
        name: of the shape.
        shape: its sizes.
        directory: directory of the peers.
        cache: directory of the synthetic models.
    """
    target = cache / f"synthetic-{name}-{shape.file_type}.gguf"
    if target.exists():
        return target
    say(f"creating {target.name}")
    cache.mkdir(parents=True, exist_ok=True)
    source = target.with_suffix(".source")
    write_family(name, shape, directory / "models" / DEMO, source)
    if shape.file_type == "mxfp4":
        return source.rename(target)
    try:
        quantize(source, target, shape.file_type, directory)
    finally:
        source.unlink()
    return target


def write_family(name: str, shape: FamilyShape, demo: Path, path: Path) -> None:
    """Write a file with random weights, tensor by tensor.

    Args:
        name: of the shape.
        shape: its sizes.
        demo: the demo model's file, whose tokenizer is used.
        path: of the file.
    """
    writer = gguf.GGUFWriter(path, shape.architecture)
    writer.add_name(f"synthetic {name}")
    for key, value in shape.fields.items():
        _add(writer, f"{shape.architecture}.{key}", value)
    writer.add_file_type(
        gguf.LlamaFileType.MOSTLY_MXFP4_MOE
        if shape.file_type == "mxfp4"
        else gguf.LlamaFileType.MOSTLY_Q8_0
    )
    add_tokenizer(writer, demo, shape.vocabulary)
    for tensor, dims in shape.tensors.items():
        kind = tensor_type(shape, tensor, dims)
        nbytes = math.prod(dims) * gguf.GGML_QUANT_SIZES[kind][1] // gguf.GGML_QUANT_SIZES[kind][0]
        writer.add_tensor_info(tensor, dims, np.dtype(np.float32), nbytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    generator = np.random.default_rng(0)
    for tensor, dims in shape.tensors.items():
        writer.write_tensor_data(_values(generator, tensor, dims, tensor_type(shape, tensor, dims)))
    writer.close()


def tensor_type(shape: FamilyShape, name: str, dims: Dims) -> gguf.GGMLQuantizationType:
    """The type in which a tensor is written."""
    if len(dims) == 1 or not name.endswith(".weight") or any(one in name for one in KEPT_IN_F32):
        return F32
    return MXFP4 if shape.file_type == "mxfp4" and "_exps." in name else Q8_0


def _values(
    generator: np.random.Generator, name: str, dims: Dims, kind: gguf.GGMLQuantizationType
) -> np.ndarray[Any, Any]:
    if kind == F32:
        if name.endswith("ssm_a"):
            return np.full(dims, -1.0, np.float32)  # a rate of decay is negative
        if len(dims) == 1 or name.endswith(".bias"):
            ones = name.endswith(".weight") and "sinks" not in name
            return np.full(dims, float(ones), np.float32)
        return SPREAD * generator.standard_normal(dims, np.float32)
    rows = math.prod(dims[:-1])
    return (mxfp4 if kind == MXFP4 else q8_0)(generator, rows, dims[-1])


def mxfp4(generator: np.random.Generator, rows: int, cols: int) -> Bytes:
    """Random weights as blocks of 32: the exponent of a power of two, 16 bytes of codes. [rows, bytes]."""
    blocks = generator.integers(0, 256, (rows, cols // 32, 17), np.uint8)
    # Codes are uniform in the 16 values, whose standard deviation is 2.9.
    blocks[:, :, 0] = 127 + round(math.log2(SPREAD / 2.9))
    return blocks.reshape(rows, -1)


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case list():
            writer.add_array(key, value)
        case _:
            raise TypeError(f"{key}: {value!r}")
