"""The `triton` backend: paged attention with one launch per layer, or two if keys are split."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import triton
from numpy.typing import NDArray

from engine.executors.torch.attention import AttentionTraits
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.kv_store import store_kv
from engine.executors.torch.packed_copy import to_device
from engine.executors.torch.step_layout import StepLayout
from engine.executors.torch.tiling import (
    MAX_SPLIT_QUERIES,
    Tiling,
    split_count,
    tile_keys,
    tile_queries,
)
from engine.executors.torch.triton_kernels import attend_kernel, merge_kernel

_MIN_TILE_ROWS = 16  # minimum dimension of a tensor-core multiplication
_CPU_PROCESSORS = 4  # for Triton's interpreter, so that tests cover splits


@dataclass(frozen=True, slots=True)
class StepTensors:
    """A step's layout on the device, and the host's copy of what kernel launches need.

    Attributes:
        slots: [T] int64, flat token → block × block_size + offset.
        query_start: [R + 1] int32, batch → first flat token.
        context_lens: [R] int32, number of keys of each row.
        block_tables: [R, blocks] int32; its last dimension is contiguous.
        host_query_start: `query_start` on the host.
        longest: upper bound of `context_lens`.
    """

    slots: torch.Tensor
    query_start: torch.Tensor
    context_lens: torch.Tensor
    block_tables: torch.Tensor
    host_query_start: NDArray[np.int32]
    longest: int


def triton_step(pool: KvPool, layout: StepLayout, device: torch.device) -> "TritonStep":
    """Copy a layout to the device and prepare its step."""
    copied = to_device(
        {
            "slots": layout.slots,
            "query_start": layout.query_start,
            "context_lens": layout.context_lens,
            "block_tables": layout.block_tables,
        },
        device,
    )
    tensors = StepTensors(
        **copied,
        host_query_start=layout.query_start,
        longest=int(layout.context_lens.max()),
    )
    return TritonStep(pool, tensors)


class TritonStep:
    """`PagedStep` with Triton kernels. They read device memory only, so CUDA graphs can replay them."""

    def __init__(self, pool: KvPool, tensors: StepTensors) -> None:
        """Prepare a step.

        Args:
            pool: the KV pool.
            tensors: the step's layout on the device.
        """
        self._pool = pool
        self._step = tensors
        self._device = tensors.slots.device
        longest_run = int(np.diff(tensors.host_query_start).max())
        self._splits_allowed = longest_run <= MAX_SPLIT_QUERIES
        self._one_query = longest_run == 1
        self._tilings: dict[int, tuple[Tiling, torch.Tensor, torch.Tensor]] = {}

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        traits: AttentionTraits,
    ) -> torch.Tensor:
        """See `PagedStep.attend`."""
        store_kv(self._pool, layer, self._step.slots, key, value)
        tokens, heads, key_size = query.shape
        kv_heads, value_size = value.shape[1], value.shape[2]
        group = heads // kv_heads
        tiling, tile_batch, tile_first = self._tiles(group)
        splits = self._splits(len(tiling.batch), kv_heads, traits)
        query = query if query.stride(2) == 1 else query.contiguous()
        keys, values = self._pool.keys[layer], self._pool.values[layer]
        output = query.new_empty(tokens, heads, value_size)
        parts = _partials(tokens, heads, splits, value_size, self._device)
        sinks = output if traits.sinks is None else traits.sinks.float()
        key_padded = max(_MIN_TILE_ROWS, triton.next_power_of_2(key_size))
        value_padded = triton.next_power_of_2(value_size)
        attend_kernel[len(tiling.batch), kv_heads, splits](
            query,
            keys,
            values,
            output,
            *parts,
            sinks,
            tile_batch,
            tile_first,
            self._step.query_start,
            self._step.context_lens,
            self._step.block_tables,
            self._step.block_tables.stride(0),
            query.stride(0),
            query.stride(1),
            keys.stride(0),
            keys.stride(1),
            keys.stride(2),
            values.stride(0),
            values.stride(1),
            values.stride(2),
            heads,
            traits.scale,
            traits.softcap,
            traits.sliding_window,
            SPLITS=splits,
            GROUP=group,
            TILE_QUERIES=tiling.queries,
            TILE_ROWS=max(_MIN_TILE_ROWS, triton.next_power_of_2(tiling.queries * group)),
            TILE_KEYS=tile_keys(key_bytes=key_padded * query.element_size()),
            BLOCK_SIZE=self._pool.block_size,
            KEY=key_size,
            KEY_PADDED=key_padded,
            VALUE=value_size,
            VALUE_PADDED=max(_MIN_TILE_ROWS, value_padded),
            HAS_SINKS=traits.sinks is not None,
            ONE_QUERY=self._one_query,
        )
        if splits > 1:
            merge_kernel[tokens, heads](
                *parts,
                output,
                sinks,
                heads,
                SPLITS=splits,
                SPLITS_PADDED=triton.next_power_of_2(splits),
                VALUE=value_size,
                VALUE_PADDED=value_padded,
                HAS_SINKS=traits.sinks is not None,
            )
        return output

    def _tiles(self, group: int) -> tuple[Tiling, torch.Tensor, torch.Tensor]:
        """The tiling for layers with `group` query heads per KV head, and its device arrays."""
        cached = self._tilings.get(group)
        if cached is None:
            tiling = tile_queries(self._step.host_query_start, group=group)
            copied = to_device({"batch": tiling.batch, "first": tiling.first}, self._device)
            cached = self._tilings[group] = (tiling, copied["batch"], copied["first"])
        return cached

    def _splits(self, tiles: int, kv_heads: int, traits: AttentionTraits) -> int:
        if not self._splits_allowed:
            return 1
        longest = self._step.longest
        if traits.sliding_window:
            longest = min(longest, traits.sliding_window)
        return split_count(
            tiles=tiles,
            kv_heads=kv_heads,
            longest_context=longest,
            processors=_processors(self._device),
        )


@cache
def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return _CPU_PROCESSORS
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _partials(
    tokens: int, heads: int, splits: int, value_size: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scratch tensors for the splits' partial sums, maxima and norms; unused with one split."""
    if splits == 1:
        unused = torch.empty(1, device=device)
        return unused, unused, unused
    return (
        torch.empty(tokens, heads, splits, value_size, device=device),
        torch.empty(tokens, heads, splits, device=device),
        torch.empty(tokens, heads, splits, device=device),
    )
