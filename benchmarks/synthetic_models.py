"""Creates GGUF files with the shapes of Qwen2.5 and Llama 3.2 and random weights, for speed measurements.

Layers are Q4_1, as in the demo model, or Q4_0, with embeddings in Q8_0; or everything is F16, from which
llama.cpp's quantizer makes its mixed formats. Embeddings are tied with lm_head. The tokenizer is the demo
model's, padded with unused tokens to the shape's vocabulary size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import gguf
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Weights = Literal["q4_1", "q4_0", "f16"]
SPREAD = 0.02
"""Standard deviation of the weights."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model (its `config.json`).

    Attributes:
        architecture: GGUF's name for it.
        family: the first part of the file's name.
        biases: whether q, k and v have biases.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int = 151_936
    context: int = 32_768
    rope_theta: float = 1e6
    norm_epsilon: float = 1e-6
    architecture: str = "qwen2"
    family: str = "qwen2.5"
    biases: bool = True

    @property
    def kv_size(self) -> int:
        """Elements of a token's keys in a layer."""
        return self.hidden // self.heads * self.kv_heads


SHAPES = {
    "0.5B": Shape("0.5B", hidden=896, layers=24, heads=14, kv_heads=2, feed_forward=4864),
    "1.5B": Shape("1.5B", hidden=1536, layers=28, heads=12, kv_heads=2, feed_forward=8960),
}
"""Qwen2.5."""


def _llama(name: str, hidden: int, layers: int, heads: int, feed_forward: int) -> Shape:
    return Shape(
        name,
        hidden,
        layers,
        heads,
        kv_heads=8,
        feed_forward=feed_forward,
        vocabulary=128_256,
        context=131_072,
        rope_theta=5e5,
        norm_epsilon=1e-5,
        architecture="llama",
        family="llama-3.2",
        biases=False,
    )


LLAMA_SHAPES = {
    "1B": _llama("1B", hidden=2048, layers=16, heads=32, feed_forward=8192),
    "3B": _llama("3B", hidden=3072, layers=28, heads=24, feed_forward=8192),
}
"""Llama 3.2, without its scaled rotary frequencies."""


def synthetic_model(shape: Shape, demo: Path, directory: Path, weights: Weights = "q4_1") -> Path:
    """The path of a shape's file, which is created atomically if it does not exist.

    Args:
        shape: the model's shape.
        demo: the demo model's file, whose tokenizer is used.
        directory: directory of the synthetic models.
        weights: format of the layers' matrices.
    """
    path = directory / f"synthetic-{shape.family}-{shape.name}-{weights}.gguf"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        _write(shape, demo, part, weights)
        part.replace(path)
    return path


def _write(shape: Shape, demo: Path, path: Path, weights: Weights) -> None:
    writer = gguf.GGUFWriter(path, shape.architecture, use_temp_file=True)
    writer.add_name(f"synthetic {shape.family} {shape.name}")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{weights.upper()}"])
    add_tokenizer(writer, demo, shape.vocabulary)
    generator = np.random.default_rng(0)
    layers = gguf.GGMLQuantizationType[weights.upper()]
    embedding = layers if weights == "f16" else gguf.GGMLQuantizationType.Q8_0
    for name, kind, rows, cols in _tensors(shape, layers, embedding):
        if cols == 0:
            values = np.ones(rows) if name.endswith("norm.weight") else np.zeros(rows)
            writer.add_tensor(name, values.astype(np.float32))
        else:
            blocks = RANDOM_BLOCKS[kind](generator, rows, cols)
            writer.add_tensor(name, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: gguf.GGUFWriter, demo: Path, vocabulary: int) -> None:
    """Add the demo model's tokenizer, padded to a size of the vocabulary."""
    fields = gguf.GGUFReader(str(demo)).fields

    def content(name: str) -> object:
        return fields[f"tokenizer.ggml.{name}"].contents()

    tokens, types = list(content("tokens")), list(content("token_type"))  # type: ignore[call-overload]
    padding = vocabulary - len(tokens)
    tokens += [f"<|unused_{at}|>" for at in range(padding)]
    types += [int(gguf.TokenType.UNUSED)] * padding
    writer.add_tokenizer_model(str(content("model")))
    writer.add_tokenizer_pre(str(content("pre")))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(list(content("merges")))  # type: ignore[call-overload]
    for name in ("bos_token_id", "eos_token_id"):
        writer.add_uint32(f"tokenizer.ggml.{name}", int(content(name)))  # type: ignore[call-overload]
    writer.add_chat_template(str(fields["tokenizer.chat_template"].contents()))


def _tensors(
    shape: Shape, layers: gguf.GGMLQuantizationType, embedding: gguf.GGMLQuantizationType
) -> Iterator[tuple[str, gguf.GGMLQuantizationType, int, int]]:
    """Name, type, rows and columns; a vector has no columns."""
    f32 = gguf.GGMLQuantizationType.F32
    hidden, kv = shape.hidden, shape.kv_size
    yield "token_embd.weight", embedding, shape.vocabulary, hidden
    yield "output_norm.weight", f32, hidden, 0
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", f32, hidden, 0
        yield block + "ffn_norm.weight", f32, hidden, 0
        for name, rows in (("attn_q", hidden), ("attn_k", kv), ("attn_v", kv)):
            yield f"{block}{name}.weight", layers, rows, hidden
            if shape.biases:
                yield f"{block}{name}.bias", f32, rows, 0
        yield block + "attn_output.weight", layers, hidden, hidden
        yield block + "ffn_gate.weight", layers, shape.feed_forward, hidden
        yield block + "ffn_up.weight", layers, shape.feed_forward, hidden
        yield block + "ffn_down.weight", layers, hidden, shape.feed_forward


def q4_1(generator: np.random.Generator, rows: int, cols: int) -> Bytes:
    """Random weights as blocks of 32: f16 scale, f16 minimum, 16 bytes of codes. [rows, bytes]."""
    blocks = np.empty((rows, cols // 32, 20), np.uint8)
    # Codes are uniform in 0..15, so their standard deviation is 4.61 scales.
    scale = SPREAD / 4.61
    blocks[:, :, :4] = np.array([scale, -7.5 * scale], np.float16).view(np.uint8)
    blocks[:, :, 4:] = generator.integers(0, 256, (rows, cols // 32, 16), np.uint8)
    return blocks.reshape(rows, -1)


def q4_0(generator: np.random.Generator, rows: int, cols: int) -> Bytes:
    """Random weights as blocks of 32: f16 scale, 16 bytes of codes. [rows, bytes]."""
    blocks = np.empty((rows, cols // 32, 18), np.uint8)
    scale = SPREAD / 4.32  # codes are uniform in -7..7
    blocks[:, :, :2] = np.array([scale], np.float16).view(np.uint8)
    low, high = generator.integers(1, 16, (2, rows, cols // 32, 16), np.uint8)
    blocks[:, :, 2:] = low | high << 4
    return blocks.reshape(rows, -1)


def q8_0(generator: np.random.Generator, rows: int, cols: int) -> Bytes:
    """Random weights as blocks of 32: f16 scale, 32 signed codes. [rows, bytes]."""
    blocks = np.empty((rows, cols // 32, 34), np.uint8)
    scale = SPREAD / 73.9  # codes are uniform in -128..127
    blocks[:, :, :2] = np.array([scale], np.float16).view(np.uint8)
    blocks[:, :, 2:] = generator.integers(0, 256, (rows, cols // 32, 32), np.uint8)
    return blocks.reshape(rows, -1)


def f16(generator: np.random.Generator, rows: int, cols: int) -> NDArray[np.float16]:
    """Random weights, normally distributed. [rows, cols]."""
    values = generator.standard_normal((rows, cols), np.float32)
    values *= SPREAD
    return values.astype(np.float16)


RANDOM_BLOCKS = {
    gguf.GGMLQuantizationType.F16: f16,
    gguf.GGMLQuantizationType.Q4_1: q4_1,
    gguf.GGMLQuantizationType.Q4_0: q4_0,
    gguf.GGMLQuantizationType.Q8_0: q8_0,
}
