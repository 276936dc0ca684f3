"""Creates models for measuring draft models: the demo model at the cost of a larger one, and weaker ones.

    python benchmarks/widened_models.py DEMO TARGET.gguf --shape 1B      # F16, to be quantized
    python benchmarks/widened_models.py DEMO DRAFT.gguf --noise 0.2      # as cheap as the demo model

A *widened* model computes the demo model's function with more weights, all of the others zero: hidden size,
heads and feed-forward are padded, and the norms rescaled. Its steps cost what those of a trained model of its
shape cost, and its answers are the demo model's, so that acceptance, unlike with random weights, is real.

A *noisy* model has the demo model's shapes and formats; Gaussian noise was added to the matrices of its
layers, in units of each matrix's standard deviation. The more noise, the fewer of its tokens are accepted.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a widened model; head size and number of layers are the demo model's."""

    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int


SHAPES = {
    "1B": Shape(2048, heads=32, kv_heads=8, feed_forward=4608),
    "3B": Shape(3072, heads=48, kv_heads=16, feed_forward=8192),
}
"""1.26 and 3.17 billion weights with the demo model's 30 layers."""


class _Demo:
    """The demo model's file."""

    def __init__(self, path: Path) -> None:
        self.reader = gguf.GGUFReader(str(path))
        self.hidden = self.number("embedding_length")
        self.heads = self.number("attention.head_count")
        self.kv_heads = self.number("attention.head_count_kv")
        self.head_size = self.hidden // self.heads

    def number(self, name: str) -> int:
        return int(self.reader.fields[f"llama.{name}"].contents())

    def epsilon(self) -> float:
        return float(self.reader.fields["llama.attention.layer_norm_rms_epsilon"].contents())

    def weights(self, tensor: gguf.ReaderTensor) -> Floats:
        return gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)


def _copy_fields(demo: _Demo, writer: gguf.GGUFWriter, replaced: dict[str, int | float]) -> None:
    """Copy the metadata, except for `replaced`."""
    for name, field in demo.reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        if name in replaced:
            writer.add_key_value(name, replaced[name], kind)
        elif kind == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(name, field.contents(), kind, sub_type=field.types[-1])
        else:
            writer.add_key_value(name, field.contents(), kind)


def _padded(values: Floats, rows: int, cols: int) -> NDArray[np.float16]:
    whole = np.zeros((rows, cols), np.float16)
    whole[: values.shape[0], : values.shape[1]] = values
    return whole


def _spread_heads(values: Floats, demo: _Demo, shape: Shape, kv_heads_only: bool) -> Floats:
    """Move the rows of heads to where grouped-query attention looks for them in the wider model."""
    size = demo.head_size
    heads = demo.kv_heads if kv_heads_only else demo.heads
    before = 1 if kv_heads_only else demo.heads // demo.kv_heads
    after = 1 if kv_heads_only else shape.heads // shape.kv_heads
    total = shape.kv_heads if kv_heads_only else shape.heads
    spread = np.zeros((total * size, values.shape[1]), np.float32)
    for head in range(heads):
        to = head // before * after + head % before
        spread[to * size : (to + 1) * size] = values[head * size : (head + 1) * size]
    return spread


def write_widened(source: Path, target: Path, shape: Shape) -> None:
    """Write the demo model widened to a shape, in F16."""
    demo = _Demo(source)
    scale = float(np.sqrt(demo.hidden / shape.hidden))
    writer = gguf.GGUFWriter(target, "llama", use_temp_file=True)
    _copy_fields(
        demo,
        writer,
        {
            "llama.embedding_length": shape.hidden,
            "llama.feed_forward_length": shape.feed_forward,
            "llama.attention.head_count": shape.heads,
            "llama.attention.head_count_kv": shape.kv_heads,
            "llama.attention.layer_norm_rms_epsilon": demo.epsilon() * scale**2,
            "llama.rope.dimension_count": demo.head_size,
            "general.file_type": int(gguf.LlamaFileType.MOSTLY_F16),
        },
    )
    q_size, kv_size = shape.heads * demo.head_size, shape.kv_heads * demo.head_size
    for tensor in demo.reader.tensors:
        values = demo.weights(tensor)
        kind = tensor.name.split(".")[-2]
        if values.ndim == 1:
            # The mean of squares is over more elements.
            wide = np.zeros(shape.hidden, np.float32)
            wide[: len(values)] = values * scale
            writer.add_tensor(tensor.name, wide)
            continue
        match kind:
            case "token_embd":
                whole = _padded(values, len(values), shape.hidden)
            case "attn_q":
                whole = _padded(_spread_heads(values, demo, shape, False), q_size, shape.hidden)
            case "attn_k" | "attn_v":
                whole = _padded(_spread_heads(values, demo, shape, True), kv_size, shape.hidden)
            case "attn_output":
                spread = _spread_heads(values.T, demo, shape, False).T
                whole = _padded(spread, shape.hidden, q_size)
            case "ffn_gate" | "ffn_up":
                whole = _padded(values, shape.feed_forward, shape.hidden)
            case "ffn_down":
                whole = _padded(values, shape.hidden, shape.feed_forward)
            case _:
                raise ValueError(f"unknown tensor {tensor.name}")
        writer.add_tensor(tensor.name, whole)
    _finish(writer)


def write_noisy(source: Path, target: Path, noise: float) -> None:
    """Write the demo model with noise on the matrices of its layers, in its own formats."""
    demo = _Demo(source)
    generator = np.random.default_rng(0)
    writer = gguf.GGUFWriter(target, "llama", use_temp_file=True)
    _copy_fields(demo, writer, {})
    for tensor in demo.reader.tensors:
        values = demo.weights(tensor)
        if values.ndim == 1:
            writer.add_tensor(tensor.name, values)
            continue
        if tensor.name.startswith("blk."):
            values += generator.standard_normal(values.shape, np.float32) * noise * values.std()
        blocks = gguf.quantize(values, tensor.tensor_type)
        writer.add_tensor(tensor.name, blocks, raw_dtype=tensor.tensor_type)
    _finish(writer)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("demo", type=Path, help="the demo model's GGUF file")
    parser.add_argument("target", type=Path, help="the file to write")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--shape", choices=SHAPES, help="widen to this shape")
    kind.add_argument("--noise", type=float, help="add noise of this many standard deviations")
    options = parser.parse_args(arguments)
    part = options.target.with_suffix(".part")
    if options.shape is not None:
        write_widened(options.demo, part, SHAPES[options.shape])
    else:
        write_noisy(options.demo, part, options.noise)
    part.replace(options.target)


if __name__ == "__main__":
    main()
