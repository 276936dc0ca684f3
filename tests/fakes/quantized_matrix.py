"""Matrices of integers in groups, and the tensors in which GPTQ, AWQ and compressed-tensors store them.

Written from the formats' own packages (gptqmodel, autoawq, compressed-tensors), independently of the reader.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which of eight outputs each position of a word holds."""

Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class QuantizedMatrix:
    """Weights scale * (code - zero).

    Attributes:
        bits: of a code, 4 or 8.
        codes: [outputs, inputs].
        zeros, scales: [outputs, groups].
        group_of: [inputs], the group of each input.
    """

    bits: int
    codes: NDArray[np.int64]
    zeros: NDArray[np.int64]
    scales: NDArray[np.floating[Any]]
    group_of: NDArray[np.int64]

    @property
    def weights(self) -> NDArray[np.float32]:
        """[outputs, inputs]."""
        zeros, scales = self.zeros[:, self.group_of], self.scales.astype(np.float32)
        return scales[:, self.group_of] * (self.codes - zeros).astype(np.float32)


def quantize(
    weights: NDArray[np.float32],
    *,
    bits: int = 4,
    group_size: int = -1,
    symmetric: bool = False,
    order: NDArray[np.int64] | None = None,
    scale_type: type[np.floating[Any]] = np.float16,
) -> QuantizedMatrix:
    """Round weights to the nearest codes.

    Args:
        weights: [outputs, inputs].
        bits: of a code.
        group_size: inputs of a group; -1 for all.
        symmetric: whether zero points are in the middle of the codes.
        order: inputs in the order in which they are grouped; None for their own.
        scale_type: of the scales.
    """
    outputs, inputs = weights.shape
    size = inputs if group_size == -1 else group_size
    order = np.arange(inputs) if order is None else order
    group_of = np.empty(inputs, np.int64)
    group_of[order] = np.arange(inputs) // size
    grouped = weights[:, order].reshape(outputs, -1, size)
    top = 2**bits - 1
    if symmetric:
        scales = np.abs(grouped).max(-1) / (2 ** (bits - 1))
    else:
        low, high = np.minimum(grouped.min(-1), 0), np.maximum(grouped.max(-1), 0)
        scales = (high - low) / top
    scales = np.maximum(scales, 1e-4).astype(scale_type)
    exact = scales.astype(np.float32)
    zeros = (
        np.full(exact.shape, 2 ** (bits - 1), np.int64)
        if symmetric
        else np.clip(np.rint(-low / exact), 0, top).astype(np.int64)
    )
    codes = np.rint(weights / exact[:, group_of]) + zeros[:, group_of]
    return QuantizedMatrix(bits, np.clip(codes, 0, top).astype(np.int64), zeros, scales, group_of)


def packed(codes: NDArray[np.int64], bits: int) -> NDArray[np.int32]:
    """Codes of the last axis in words, lowest bits first."""
    per = 32 // bits
    missing = -codes.shape[-1] % per
    padded = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, missing)])
    parts = padded.reshape(*codes.shape[:-1], -1, per).astype(np.uint32)
    shifts = (np.arange(per) * bits).astype(np.uint32)
    return np.bitwise_or.reduce(parts << shifts, axis=-1).view(np.int32)


def gptq_tensors(matrix: QuantizedMatrix, *, version: int = 1) -> Tensors:
    """As gptqmodel saves them: its first version subtracts 1 from whole words of zero points."""
    bits = matrix.bits
    zeros = packed(matrix.zeros.T, bits).view(np.uint32)
    if version == 1:
        zeros = zeros - np.uint32(0x11111111 if bits == 4 else 0x01010101)
    return {
        "qweight": np.ascontiguousarray(packed(matrix.codes, bits).T),
        "qzeros": zeros.view(np.int32),
        "scales": np.ascontiguousarray(matrix.scales.T),
        "g_idx": matrix.group_of.astype(np.int32),
    }


def awq_tensors(matrix: QuantizedMatrix) -> Tensors:
    """As autoawq's `gemm` saves them."""

    def ordered(codes: NDArray[np.int64]) -> NDArray[np.int32]:
        eights = codes.T.reshape(codes.shape[1], -1, 8)[:, :, AWQ_ORDER]
        return packed(eights.reshape(codes.shape[1], -1), 4)

    return {
        "qweight": ordered(matrix.codes),
        "qzeros": ordered(matrix.zeros),
        "scales": np.ascontiguousarray(matrix.scales.T),
    }


def packed_tensors(matrix: QuantizedMatrix, *, symmetric: bool) -> Tensors:
    """As compressed-tensors' `pack-quantized` saves them."""
    tensors: Tensors = {
        "weight_packed": packed(matrix.codes, matrix.bits),
        "weight_scale": matrix.scales,
        "weight_shape": np.array(matrix.codes.shape, np.int64),
    }
    if not symmetric:
        zeros = packed(matrix.zeros.T, matrix.bits).T
        tensors["weight_zero_point"] = np.ascontiguousarray(zeros)
    if (np.diff(matrix.group_of) < 0).any():
        tensors["weight_g_idx"] = matrix.group_of.astype(np.int32)
    return tensors
