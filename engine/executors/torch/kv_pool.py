"""`KvPool`: the storage of the KV pool, two tensors per layer; heads and sizes may differ by layer."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.models.transformers_spec import KvLayer


class KvPool:
    """Keys and values of `num_blocks` blocks in every layer.

    Attributes:
        keys: per layer [blocks + 1, block_size, KV heads, key size].
        values: per layer [blocks + 1, block_size, KV heads, value size].
        block_size: tokens per block.
        scratch_block: an extra block that no request owns; padding rows write to it.
    """

    def __init__(
        self,
        layers: Sequence[KvLayer],
        *,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Allocate the pool."""
        shape = (num_blocks + 1, block_size)
        self.keys = [
            torch.zeros(*shape, layer.num_kv_heads, layer.key_dim, dtype=dtype, device=device)
            for layer in layers
        ]
        self.values = [
            torch.zeros(*shape, layer.num_kv_heads, layer.value_dim, dtype=dtype, device=device)
            for layer in layers
        ]
        self.block_size = block_size
        self.scratch_block = num_blocks

    def write(
        self, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Store a step's keys and values.

        Args:
            layer: index of the layer.
            slots: [T] int64, flat token to block × block_size + offset.
            key: [T, KV heads, key size].
            value: [T, KV heads, value size].
        """
        keys, values = self.keys[layer], self.values[layer]
        keys.flatten(0, 1).index_copy_(0, slots, key.to(keys.dtype))
        values.flatten(0, 1).index_copy_(0, slots, value.to(values.dtype))

    def copy_blocks(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Copy blocks in all layers, in order: a target may be the source of a later copy."""
        for source, target in zip(sources, targets, strict=True):
            for storage in (*self.keys, *self.values):
                storage[target].copy_(storage[source])

    @property
    def block_bytes(self) -> int:
        """Bytes of a block, summed over layers."""
        return sum(storage[0].nbytes for storage in (*self.keys, *self.values))

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy blocks into main memory; synchronous.

        Args:
            blocks: [n] int32.
            out: [n, block_bytes]; each row holds the keys of all layers, then the values.
        """
        index = torch.from_numpy(blocks.astype(np.int64)).to(self.keys[0].device)
        for storage, part in zip((*self.keys, *self.values), self._parts(out), strict=True):
            gathered = storage.index_select(0, index).flatten(1)
            part.copy_(gathered.view(torch.uint8))

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy data from `read_blocks` into blocks; on a GPU, ordered before the next step's kernels."""
        index = torch.from_numpy(blocks.astype(np.int64)).to(self.keys[0].device)
        for storage, part in zip((*self.keys, *self.values), self._parts(data), strict=True):
            values = part.contiguous().to(storage.device).view(storage.dtype)
            storage.index_copy_(0, index, values.view(len(blocks), *storage.shape[1:]))

    def _parts(self, array: NDArray[np.uint8]) -> tuple[torch.Tensor, ...]:
        """Views of [n, block_bytes] by storage tensor: keys of each layer, then values of each."""
        sizes = [storage[0].nbytes for storage in (*self.keys, *self.values)]
        return torch.split(torch.from_numpy(array), sizes, dim=1)
