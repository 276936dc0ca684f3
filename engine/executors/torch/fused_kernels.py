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
    if ACTIVATION == "silu":
        active = gate * tl.sigmoid(gate)
    elif ACTIVATION == "gelu_tanh":
        # (1 + tanh(z)) / 2 = sigmoid(2 z)
        inside = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
        active = gate * tl.sigmoid(2.0 * inside)
    else:
        active = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476))
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
