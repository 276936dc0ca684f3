"""`store_kv`: writes a step's keys and values of one layer into the KV pool with one kernel."""

import torch
import triton

from engine.executors.torch.fused_kernels import store_kernel
from engine.executors.torch.kv_pool import KvPool


def store_kv(
    pool: KvPool, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> None:
    """`KvPool.write` with one kernel instead of two to four.

    Args:
        pool: the KV pool.
        layer: index of the layer.
        slots: [T] int64, flat token → block × block_size + offset.
        key: [T, KV heads, key size].
        value: [T, KV heads, value size].
    """
    key, value = _rows(key), _rows(value)
    tokens, kv_heads, key_size = key.shape
    value_size = value.shape[2]
    store_kernel[(tokens, kv_heads)](
        key,
        value,
        pool.keys[layer],
        pool.values[layer],
        slots,
        key.stride(0),
        key.stride(1),
        value.stride(0),
        value.stride(1),
        kv_heads,
        KEY=key_size,
        KEY_PADDED=triton.next_power_of_2(key_size),
        VALUE=value_size,
        VALUE_PADDED=triton.next_power_of_2(value_size),
        num_warps=1,
    )


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.stride(2) == 1 else tensor.contiguous()
