"""The `reference` backend: plain attention, one sequence at a time. The oracle, and the CPU's path.

Runs on any device. Cost: a Python loop over rows in every layer; keys and values are gathered from
their blocks into a contiguous copy first.
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
            pool: where keys and values are kept.
            layout: where the step's tokens are.
            device: where the pool is.
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
        """Store keys and values, then attend. See `PagedStep.attend`."""
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
        """The keys and values that any of the row's queries sees, and the first one's position."""
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
        query_position: the first query's.
        key_position: the first key's.
        traits: what the layer asks for.
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
        attended = _by_hand(q, k, v, visible, traits)
    else:
        attended = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=visible, scale=traits.scale, enable_gqa=q.shape[1] != k.shape[1]
        )
    return attended.squeeze(0).transpose(0, 1)


def _by_hand(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    visible: torch.Tensor,
    traits: AttentionTraits,
) -> torch.Tensor:
    """Attention with what the fused function lacks: soft caps and sinks."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = (query @ key.transpose(2, 3)).float() * traits.scale
    if traits.softcap:
        scores = torch.tanh(scores / traits.softcap) * traits.softcap
    scores = scores.masked_fill(~visible, float("-inf"))
    if traits.sinks is None:
        weights = scores.softmax(-1)
    else:
        sinks = traits.sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
    return weights.to(value.dtype) @ value
