"""Triton kernels of paged attention: attention over a split of the keys, and the merge of splits.

One kernel handles any mix of prefill, decode and verification: a program processes a tile of queries
of one sequence, all query heads of one KV head (so that a key is loaded once for the whole group), and
one of `SPLITS` equal parts of the keys, with an online softmax as in FlashAttention (Dao et al. 2022).
With one split it writes the output; with more it writes partial sums, indexed by token, which the
second kernel merges by their log-sum-exp (Flash-Decoding).

Only device memory is read, so that a launch can be captured in a CUDA graph and replayed with other
lengths. Accumulation is in float32; float32 inputs are not rounded to TF32.
"""

import triton
import triton.language as tl


@triton.jit
def attend_kernel(
    query,  # [T, heads, KEY]
    keys,  # [blocks, BLOCK_SIZE, KV heads, KEY]
    values,  # [blocks, BLOCK_SIZE, KV heads, VALUE]
    output,  # [T, heads, VALUE]
    partial_sums,  # [T, heads, SPLITS, VALUE] float32; unused with one split
    partial_max,  # [T, heads, SPLITS] float32
    partial_norm,  # [T, heads, SPLITS] float32
    sinks,  # [heads] float32; unused without sinks
    tile_batch,  # [tiles] int32, tile → batch
    tile_first,  # [tiles] int32, tile → index of its first query in the row's run
    query_start,  # [R + 1] int32
    context_lens,  # [R] int32
    block_tables,  # [R, table_stride] int32
    table_stride,
    query_token_stride,
    query_head_stride,
    key_block_stride,
    key_slot_stride,
    key_head_stride,
    value_block_stride,
    value_slot_stride,
    value_head_stride,
    heads,
    scale,
    softcap,
    window,
    SPLITS: tl.constexpr,
    GROUP: tl.constexpr,  # query heads per KV head
    TILE_QUERIES: tl.constexpr,
    TILE_ROWS: tl.constexpr,  # power of two ≥ TILE_QUERIES × GROUP
    TILE_KEYS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    KEY: tl.constexpr,
    KEY_PADDED: tl.constexpr,
    VALUE: tl.constexpr,
    VALUE_PADDED: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    ONE_QUERY: tl.constexpr,  # every row of the step has one query: a tile is a row and a token
):
    """Attention of one tile, KV head and split. Grid: (tiles, KV heads, SPLITS)."""
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    if ONE_QUERY:  # spares two loads that the others wait for
        batch = tile
        first = 0
        start = tile
        queries = 1
    else:
        batch = tl.load(tile_batch + tile)
        first = tl.load(tile_first + tile)
        start = tl.load(query_start + batch)
        queries = tl.load(query_start + batch + 1) - start
    context = tl.load(context_lens + batch)

    rows = tl.arange(0, TILE_ROWS)
    index = first + rows // GROUP
    head = kv_head * GROUP + rows % GROUP
    real = (rows < TILE_QUERIES * GROUP) & (index < queries)
    position = context - queries + index
    key_lane = tl.arange(0, KEY_PADDED)
    value_lane = tl.arange(0, VALUE_PADDED)
    token = (start + index).to(tl.int64)
    q = tl.load(
        query
        + token[:, None] * query_token_stride
        + head[:, None] * query_head_stride
        + key_lane[None, :],
        mask=real[:, None] & (key_lane < KEY)[None, :],
        other=0.0,
    )

    # The tile attends to keys [low, high), this split to [low + part × split, …).
    high = context - queries + tl.minimum(first + TILE_QUERIES, queries)
    low = 0
    if window > 0:
        low = tl.maximum(0, context - queries + first - window + 1)
    part = tl.cdiv(tl.cdiv(high - low, SPLITS), TILE_KEYS) * TILE_KEYS
    begin = low + part * split
    end = tl.minimum(high, begin + part)

    best = tl.full([TILE_ROWS], float("-inf"), tl.float32)
    norm = tl.zeros([TILE_ROWS], tl.float32)
    sums = tl.zeros([TILE_ROWS, VALUE_PADDED], tl.float32)
    for key_start in range(begin, end, TILE_KEYS):
        key_position = key_start + tl.arange(0, TILE_KEYS)
        inside = key_position < end
        block = tl.load(
            block_tables + batch * table_stride + key_position // BLOCK_SIZE, mask=inside, other=0
        ).to(tl.int64)
        slot = key_position % BLOCK_SIZE
        k = tl.load(
            keys
            + block[None, :] * key_block_stride
            + slot[None, :] * key_slot_stride
            + kv_head * key_head_stride
            + key_lane[:, None],
            mask=inside[None, :] & (key_lane < KEY)[:, None],
            other=0.0,
        ).to(q.dtype)
        scores = tl.dot(q, k, input_precision="ieee") * scale
        if softcap > 0:
            # tanh from exp of a non-positive number, which cannot overflow
            ratio = scores / softcap
            shrunk = tl.exp(-2.0 * tl.abs(ratio))
            squashed = (1.0 - shrunk) / (1.0 + shrunk)
            scores = softcap * tl.where(ratio < 0, -squashed, squashed)
        visible = inside[None, :] & (key_position[None, :] <= position[:, None])
        if window > 0:
            visible = visible & (position[:, None] - key_position[None, :] < window)
        scores = tl.where(visible, scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 1))
        # The maximum of a row without visible keys is -inf; -inf - -inf would be NaN.
        level = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp(scores - level[:, None])
        shrink = tl.exp(best - level)
        v = tl.load(
            values
            + block[:, None] * value_block_stride
            + slot[:, None] * value_slot_stride
            + kv_head * value_head_stride
            + value_lane[None, :],
            mask=inside[:, None] & (value_lane < VALUE)[None, :],
            other=0.0,
        ).to(q.dtype)
        norm = norm * shrink + tl.sum(weights, 1)
        sums = sums * shrink[:, None] + tl.dot(weights.to(q.dtype), v, input_precision="ieee")
        best = higher

    cell = token * heads + head
    value_mask = real[:, None] & (value_lane < VALUE)[None, :]
    if SPLITS == 1:
        if HAS_SINKS:
            sink = tl.load(sinks + head, mask=real, other=0.0)
            higher = tl.maximum(best, sink)
            shrink = tl.exp(best - higher)
            norm = norm * shrink + tl.exp(sink - higher)
            sums = sums * shrink[:, None]
        answer = sums / tl.where(norm == 0, 1.0, norm)[:, None]
        tl.store(
            output + cell[:, None] * VALUE + value_lane[None, :],
            answer.to(output.dtype.element_ty),
            mask=value_mask,
        )
    else:
        place = cell * SPLITS + split
        tl.store(partial_sums + place[:, None] * VALUE + value_lane[None, :], sums, mask=value_mask)
        tl.store(partial_max + place, best, mask=real)
        tl.store(partial_norm + place, norm, mask=real)


@triton.jit
def merge_kernel(
    partial_sums,  # [T, heads, SPLITS, VALUE] float32
    partial_max,  # [T, heads, SPLITS] float32
    partial_norm,  # [T, heads, SPLITS] float32
    output,  # [T, heads, VALUE]
    sinks,  # [heads] float32; unused without sinks
    heads,
    SPLITS: tl.constexpr,
    SPLITS_PADDED: tl.constexpr,
    VALUE: tl.constexpr,
    VALUE_PADDED: tl.constexpr,
    HAS_SINKS: tl.constexpr,
):
    """Merge the splits of one token and head. Grid: (T, heads)."""
    cell = tl.program_id(0).to(tl.int64) * heads + tl.program_id(1)
    split = tl.arange(0, SPLITS_PADDED)
    lane = tl.arange(0, VALUE_PADDED)
    real = split < SPLITS
    place = cell * SPLITS + split
    best = tl.load(partial_max + place, mask=real, other=float("-inf"))
    norm = tl.load(partial_norm + place, mask=real, other=0.0)
    sums = tl.load(
        partial_sums + place[:, None] * VALUE + lane[None, :],
        mask=real[:, None] & (lane < VALUE)[None, :],
        other=0.0,
    )
    highest = tl.max(best, 0)
    if HAS_SINKS:
        sink = tl.load(sinks + tl.program_id(1))
        highest = tl.maximum(highest, sink)
    shrink = tl.exp(best - highest)
    total = tl.sum(norm * shrink, 0)
    if HAS_SINKS:
        total += tl.exp(sink - highest)
    answer = tl.sum(sums * shrink[:, None], 0) / total
    tl.store(output + cell * VALUE + lane, answer.to(output.dtype.element_ty), mask=lane < VALUE)
