"""The `reference` backend: scaled dot-product attention, one sequence at a time.

It runs on any device, is the backend on the CPU and the oracle in tests. Cost: a Python loop over
rows in every layer; keys and values are gathered from their blocks into a contiguous copy.
"""

import torch
from torch.nn import functional

from engine.executors.torch.attention import AttentionTraits
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.step_layout import StepLayout


class ReferenceStep:
    """`PagedStep` by scaled dot-product attention per sequence."""

    def __init__(self, pool: KvPool, layout: StepLayout, device: torch.device) -> None:
        """Prepare a step.

        Args:
            pool: the KV pool.
            layout: the step's layout.
            device: the device of the pool.
        """
        self._pool = pool
        self._slots = torch.from_numpy(layout.slots).to(device)
        self._tables = torch.from_numpy(layout.block_tables).to(device)
        starts = layout.query_start.tolist()
        self._runs = list(zip(starts, starts[1:], layout.context_lens.tolist(), strict=False))

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        traits: AttentionTraits,
    ) -> torch.Tensor:
        """See `PagedStep.attend`."""
        self._pool.write(layer, self._slots, key, value)
        output = query.new_empty(query.shape[0], query.shape[1], value.shape[2])
        for batch, (start, end, context) in enumerate(self._runs):
            keys, values, first = self._gather(layer, batch, end - start, context, traits)
            output[start:end] = attend_sequence(
                query[start:end],
                keys.to(query.dtype),
                values.to(query.dtype),
                query_position=context - (end - start),
                key_position=first,
                traits=traits,
            )
        return output

    def _gather(
        self, layer: int, batch: int, queries: int, context: int, traits: AttentionTraits
    ) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Keys and values visible to any query of the row, and the position of the first one."""
        size = self._pool.block_size
        oldest = context - queries - traits.sliding_window + 1 if traits.sliding_window else 0
        first_block = max(0, oldest) // size
        blocks = self._tables[batch, first_block : -(-context // size)].long()
        first = first_block * size
        keys = self._pool.keys[layer][blocks].flatten(0, 1)[: context - first]
        values = self._pool.values[layer][blocks].flatten(0, 1)[: context - first]
        return keys, values, first


def attend_sequence(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    query_position: int,
    key_position: int,
    traits: AttentionTraits,
) -> torch.Tensor:
    """Causal attention of one sequence: [n, heads, value size].

    Args:
        query: [n, heads, key size], at consecutive positions.
        key: [m, KV heads, key size], at consecutive positions up to the last query's.
        value: [m, KV heads, value size].
        query_position: position of the first query.
        key_position: position of the first key.
        traits: attention parameters of the layer.
    """
    n, m = query.shape[0], key.shape[0]
    queries = torch.arange(query_position, query_position + n, device=query.device)
    keys = torch.arange(key_position, key_position + m, device=query.device)
    distance = queries[:, None] - keys[None, :]
    visible = distance >= 0
    if traits.sliding_window:
        visible &= distance < traits.sliding_window
    q, k, v = (tensor.transpose(0, 1).unsqueeze(0) for tensor in (query, key, value))
    if traits.softcap or traits.sinks is not None:
        attended = _explicit_attention(q, k, v, visible, traits)
    else:
        attended = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=visible, scale=traits.scale, enable_gqa=q.shape[1] != k.shape[1]
        )
    return attended.squeeze(0).transpose(0, 1)


def _explicit_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    visible: torch.Tensor,
    traits: AttentionTraits,
) -> torch.Tensor:
    """Attention with soft caps and sinks, which the fused function lacks."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = (query @ key.transpose(2, 3)).float() * traits.scale
    if traits.softcap:
        scores = torch.tanh(scores / traits.softcap) * traits.softcap
    scores = scores.masked_fill(~visible, float("-inf"))
    if traits.sinks is None:
        probabilities = scores.softmax(-1)
    else:
        sinks = traits.sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        probabilities = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
    return probabilities.to(value.dtype) @ value
