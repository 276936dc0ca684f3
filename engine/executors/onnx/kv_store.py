"""`KvStore`: the storage of the KV pool in numpy, two arrays per layer; heads and sizes may differ by layer.

A *slot* is the place of a token: block × block size + offset. A token's keys are consecutive in memory, and
so are those of a block, which makes blocks cheap to copy; `gather` transposes what a graph wants by heads.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.models.onnx_spec import OnnxKvDtype
from engine.models.transformers_spec import KvLayer

Floats = NDArray[np.floating[Any]]

ELEMENT_TYPES: dict[OnnxKvDtype, type[np.floating[Any]]] = {"f16": np.float16, "f32": np.float32}


class KvStore:
    """Keys and values of `num_blocks` blocks in every layer. Pages take memory when they are first written.

    Attributes:
        arrays: the keys of each layer, then the values of each: [slots, KV heads, size].
        block_size: tokens per block.
        num_blocks: blocks in the store.
    """

    def __init__(
        self,
        layers: Sequence[KvLayer],
        *,
        num_blocks: int,
        block_size: int,
        dtype: OnnxKvDtype,
    ) -> None:
        """Allocate the store."""
        self.block_size = block_size
        self.num_blocks = num_blocks
        slots, kind = num_blocks * block_size, ELEMENT_TYPES[dtype]
        keys = [np.zeros((slots, one.num_kv_heads, one.key_dim), kind) for one in layers]
        values = [np.zeros((slots, one.num_kv_heads, one.value_dim), kind) for one in layers]
        self.arrays: list[Floats] = [*keys, *values]

    def gather(self, slots: NDArray[np.int64], *, room: int) -> list[Floats]:
        """The keys and values of slots [B, P], in the order of `arrays`: [B, KV heads, room, size].

        Entries from P on are zero.
        """
        batch, width = slots.shape
        gathered = []
        for array in self.arrays:
            out = np.zeros((batch, array.shape[1], room, array.shape[2]), array.dtype)
            out[:, :, :width] = array.take(slots, axis=0).transpose(0, 2, 1, 3)
            gathered.append(out)
        return gathered

    def scatter(self, slots: NDArray[np.int64], columns: Sequence[Floats]) -> None:
        """Store keys and values of slots [T], given in the order of `arrays`: [T, KV heads, size]."""
        for array, values in zip(self.arrays, columns, strict=True):
            array[slots] = values

    @property
    def block_bytes(self) -> int:
        """Bytes of a block, summed over layers."""
        return sum(array[: self.block_size].nbytes for array in self.arrays)

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy blocks in all layers, in order: a target may be the source of a later copy."""
        for array in self.arrays:
            blocks = self._by_block(array)
            for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
                blocks[target] = blocks[source]

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy blocks into `out`, [n, block_bytes]: the keys of all layers, then the values."""
        at = 0
        for array in self.arrays:
            raw = self._by_block(array)[blocks].reshape(len(blocks), -1).view(np.uint8)
            out[:, at : at + raw.shape[1]] = raw
            at += raw.shape[1]

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy data from `read_blocks` into blocks."""
        at = 0
        for array in self.arrays:
            target = self._by_block(array)
            size = target[0].nbytes
            part = np.ascontiguousarray(data[:, at : at + size]).view(array.dtype)
            target[blocks] = part.reshape(len(blocks), *target.shape[1:])
            at += size

    def _by_block(self, array: Floats) -> Floats:
        """A view of an array, [blocks, block_size, KV heads, size]."""
        return array.reshape(self.num_blocks, self.block_size, *array.shape[1:])
