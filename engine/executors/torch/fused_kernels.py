"""Triton kernels that each replace several small ones of a transformers layer.

A decode step of a small model waits for kernel launches, not for arithmetic: transformers computes one
RMSNorm with eight kernels and the rotation of queries and keys with ten. All compute in float32 and
round once, where transformers rounds after every operation.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    source,  # [rows, SIZE], rows at two strides
    weight,  # [SIZE]
    output,  # [rows, SIZE]
    inner,  # row = outer index × inner + inner index
    outer_stride,
    inner_stride,
    eps,
    offset,  # added to the weight
    SIZE: tl.constexpr,
    PADDED: tl.constexpr,
):
    """X / √(mean(x²) + eps) × (offset + weight). Grid: (rows,)."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, PADDED)
    real = lane < SIZE
    start = source + row // inner * outer_stride + row % inner * inner_stride
    values = tl.load(start + lane, mask=real, other=0.0).to(tl.float32)
    factors = tl.load(weight + lane, mask=real, other=0.0).to(tl.float32) + offset
    mean = tl.sum(values * values, 0) / SIZE
    answer = values * tl.rsqrt(mean + eps) * factors
    tl.store(output + row * SIZE + lane, answer.to(output.dtype.element_ty), mask=real)


@triton.jit
def add_norm_kernel(
    residual,  # [rows, SIZE]
    added,  # [rows, SIZE]
    weight,  # [SIZE]
    sums,  # [rows, SIZE]
    output,  # [rows, SIZE]
    eps,
    offset,  # added to the weight
    SIZE: tl.constexpr,
    PADDED: tl.constexpr,
):
    """The sum of two tensors, and its RMSNorm as of `rms_norm_kernel`. Grid: (rows,)."""
    start = tl.program_id(0).to(tl.int64) * SIZE
    lane = tl.arange(0, PADDED)
    real = lane < SIZE
    values = tl.load(residual + start + lane, mask=real, other=0.0).to(tl.float32)
    values += tl.load(added + start + lane, mask=real, other=0.0).to(tl.float32)
    total = values.to(sums.dtype.element_ty)
    tl.store(sums + start + lane, total, mask=real)
    values = total.to(tl.float32)
    factors = tl.load(weight + lane, mask=real, other=0.0).to(tl.float32) + offset
    mean = tl.sum(values * values, 0) / SIZE
    answer = values * tl.rsqrt(mean + eps) * factors
    tl.store(output + start + lane, answer.to(output.dtype.element_ty), mask=real)


@triton.jit
def activated(gate, ACTIVATION: tl.constexpr):
    """An activation of float32 values."""
    if ACTIVATION == "silu":
        active = gate * tl.sigmoid(gate)
    elif ACTIVATION == "gelu_tanh":
        # (1 + tanh(z)) / 2 = sigmoid(2 z)
        inside = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
        active = gate * tl.sigmoid(2.0 * inside)
    else:
        active = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476))
    return active


@triton.jit
def gate_kernel(
    both,  # [T, 2 × SIZE], gate and up side by side
    output,  # [T, SIZE]
    SIZE: tl.constexpr,
    TILE: tl.constexpr,
    ACTIVATION: tl.constexpr,  # silu, gelu_tanh or gelu
):
    """activation(gate) × up. Grid: (T, ⌈SIZE / TILE⌉)."""
    token = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * TILE + tl.arange(0, TILE)
    real = lane < SIZE
    gate = tl.load(both + token * 2 * SIZE + lane, mask=real, other=0.0).to(tl.float32)
    up = tl.load(both + token * 2 * SIZE + SIZE + lane, mask=real, other=0.0).to(tl.float32)
    active = activated(gate, ACTIVATION)
    answer = (active * up).to(output.dtype.element_ty)
    tl.store(output + token * SIZE + lane, answer, mask=real)


@triton.jit
def rotary_kernel(
    query,  # [T, heads, HEAD]
    key,  # [T, KV heads, HEAD]
    cos,  # [T, ROTARY]
    sin,  # [T, ROTARY]
    rotated_query,  # [T, heads, HEAD]
    rotated_key,  # [T, KV heads, HEAD]
    heads,
    kv_heads,
    query_token_stride,
    query_head_stride,
    key_token_stride,
    key_head_stride,
    cos_stride,
    sin_stride,
    HEAD: tl.constexpr,
    PADDED: tl.constexpr,
    ROTARY: tl.constexpr,
):
    """Rotate pairs of a head's first ROTARY elements, half of them apart. Grid: (T, heads + KV heads)."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    lane = tl.arange(0, PADDED)
    real = lane < HEAD
    turned = lane < ROTARY
    partner = tl.where(lane < ROTARY // 2, lane + ROTARY // 2, lane - ROTARY // 2)
    c = tl.load(cos + token * cos_stride + lane, mask=turned, other=1.0).to(tl.float32)
    s = tl.load(sin + token * sin_stride + lane, mask=turned, other=0.0).to(tl.float32)
    s = tl.where(lane < ROTARY // 2, -s, s)
    if head < heads:
        start = query + token * query_token_stride + head * query_head_stride
        own = tl.load(start + lane, mask=real, other=0.0).to(tl.float32)
        other = tl.load(start + partner, mask=turned, other=0.0).to(tl.float32)
        answer = (own * c + other * s).to(rotated_query.dtype.element_ty)
        tl.store(rotated_query + (token * heads + head) * HEAD + lane, answer, mask=real)
    else:
        kv_head = head - heads
        start = key + token * key_token_stride + kv_head * key_head_stride
        own = tl.load(start + lane, mask=real, other=0.0).to(tl.float32)
        other = tl.load(start + partner, mask=turned, other=0.0).to(tl.float32)
        answer = (own * c + other * s).to(rotated_key.dtype.element_ty)
        tl.store(rotated_key + (token * kv_heads + kv_head) * HEAD + lane, answer, mask=real)


@triton.jit
def store_kernel(
    key,  # [T, KV heads, KEY]
    value,  # [T, KV heads, VALUE]
    keys,  # [slots, KV heads, KEY]
    values,  # [slots, KV heads, VALUE]
    slots,  # [T] int64
    key_token_stride,
    key_head_stride,
    value_token_stride,
    value_head_stride,
    kv_heads,
    KEY: tl.constexpr,
    KEY_PADDED: tl.constexpr,
    VALUE: tl.constexpr,
    VALUE_PADDED: tl.constexpr,
):
    """Store one token's key and value of one head in the KV pool. Grid: (T, KV heads)."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    place = tl.load(slots + token) * kv_heads + head
    key_lane = tl.arange(0, KEY_PADDED)
    value_lane = tl.arange(0, VALUE_PADDED)
    k = tl.load(
        key + token * key_token_stride + head * key_head_stride + key_lane, mask=key_lane < KEY
    )
    v = tl.load(
        value + token * value_token_stride + head * value_head_stride + value_lane,
        mask=value_lane < VALUE,
    )
    tl.store(keys + place * KEY + key_lane, k.to(keys.dtype.element_ty), mask=key_lane < KEY)
    tl.store(
        values + place * VALUE + value_lane, v.to(values.dtype.element_ty), mask=value_lane < VALUE
    )


@triton.jit
def skinny_kernel(
    source,  # [rows, K]
    weight,  # [size, K], or [2 × size, K] if there is an activation: gate above up
    bias,  # [size] or [2 × size]; unused without a bias
    residual,  # [rows, size], added at the end; unused without one
    output,  # [rows, size]
    rows,
    source_stride,
    size,
    K: tl.constexpr,
    ROWS: tl.constexpr,  # power of two ≥ rows
    TILE: tl.constexpr,
    TILE_K: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,  # of a gate, or none
):
    """Source × weightᵀ + bias for very few rows, [activation(gate) × up]. Grid: (⌈size / TILE⌉,)."""
    row = tl.arange(0, ROWS)
    unit = tl.program_id(0) * TILE + tl.arange(0, TILE)
    lane = tl.arange(0, TILE_K)
    real = unit < size
    sums = tl.zeros([ROWS, TILE, TILE_K], tl.float32)
    if ACTIVATION != "none":
        up_sums = tl.zeros([ROWS, TILE, TILE_K], tl.float32)
    for start in tl.static_range(0, K, TILE_K):
        k = start + lane
        x = tl.load(
            source + row[:, None] * source_stride + k[None, :],
            mask=(row < rows)[:, None] & (k < K)[None, :],
            other=0.0,
        ).to(tl.float32)
        place = unit.to(tl.int64)[:, None] * K + k[None, :]
        mask = real[:, None] & (k < K)[None, :]
        w = tl.load(weight + place, mask=mask, other=0.0).to(tl.float32)
        sums += x[:, None, :] * w[None, :, :]
        if ACTIVATION != "none":
            up_place = (size + unit).to(tl.int64)[:, None] * K + k[None, :]
            up = tl.load(weight + up_place, mask=mask, other=0.0).to(tl.float32)
            up_sums += x[:, None, :] * up[None, :, :]
    answer = tl.sum(sums, 2)
    if HAS_BIAS:
        answer += tl.load(bias + unit, mask=real, other=0.0).to(tl.float32)[None, :]
    if ACTIVATION != "none":
        factor = tl.sum(up_sums, 2)
        if HAS_BIAS:
            factor += tl.load(bias + size + unit, mask=real, other=0.0).to(tl.float32)[None, :]
        answer = activated(answer, ACTIVATION) * factor
    cell = row[:, None] * size + unit[None, :]
    inside = (row < rows)[:, None] & real[None, :]
    if HAS_RESIDUAL:
        answer += tl.load(residual + cell, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + cell, answer.to(output.dtype.element_ty), mask=inside)
