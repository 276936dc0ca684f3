"""Fused kernels and modules: what they compute, which modules they replace, and how they are undone."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.executors.torch.fusion_check import agree
from engine.executors.torch.merged_linear import (
    ProjectionPart,
    SharedProjection,
    merge_linears,
    mergeable,
)
from tests.torch_executor.running_cases import lines_of

pytest.importorskip("triton")

LIMITS = {"f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
FUSED = {
    # norms, MLPs, projections of queries, keys and values, rotations, and sums, in three layers
    "gpt2": (0, 0, 0, 0, 0),
    "llama": (7, 3, 9, 3, 3),
    "mistral": (7, 3, 9, 3, 3),
    "qwen2": (7, 3, 9, 3, 3),
    "qwen3": (13, 3, 9, 3, 3),
    "gemma2": (13, 3, 9, 3, 0),
    "gemma3": (19, 3, 9, 3, 0),
    "gemma4": (19, 3, 6, 0, 0),
    "phi3": (7, 3, 0, 3, 3),
    "mixtral": (7, 0, 9, 3, 0),
    "opt": (0, 0, 9, 0, 0),
    "gpt_oss": (7, 0, 9, 0, 0),
    "deepseek_v3": (13, 3, 0, 3, 1),
}


def check(lines):
    assert len(lines) > 60
    for name, found in lines:
        if name in FUSED:
            names = ("norm", "mlp", "projections", "rotary", "layers")
            assert found == {"wrong": 0, **dict(zip(names, FUSED[name], strict=True))}, name
        else:
            assert found <= LIMITS[name.split()[-1]], name


def test_interpreted_kernels_and_a_model(interpreted):
    check(interpreted["fused_cases"])


@pytest.mark.soak
def test_all_architectures_interpreted(tmp_path):
    check(lines_of("fused_cases", tmp_path, TRITON_INTERPRET="1"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_kernels_and_models_on_a_gpu(tmp_path):
    names = " ".join(name for name in FUSED if name not in ("mixtral", "gpt_oss", "deepseek_v3"))
    check(lines_of("fused_cases", tmp_path, FUSED_ARCHITECTURES=names))


def projections(*sizes, bias):
    torch.manual_seed(0)
    return [torch.nn.Linear(8, size, bias=bias).requires_grad_(False) for size in sizes]


@pytest.mark.parametrize("bias", [False, True])
def test_merged_projections_compute_the_same_and_share_their_memory(bias):
    linears = projections(6, 4, 2, bias=bias)
    source = torch.randn(1, 3, 8)
    expected = [linear(source) for linear in linears]
    weight, biases, sizes = merge_linears(linears)
    shared = SharedProjection(lambda source: functional.linear(source, weight, biases), sizes)
    parts = [ProjectionPart(shared, index) for index in range(3)]
    for _ in range(2):
        for part, values in zip(parts, expected, strict=True):
            torch.testing.assert_close(part(source), values)
    for linear, values in zip(linears, expected, strict=True):
        torch.testing.assert_close(linear(source), values)
    addresses = {linear.weight.untyped_storage().data_ptr() for linear in linears}
    assert addresses == {weight.untyped_storage().data_ptr()}


def test_another_input_is_projected_anew():
    linears = projections(6, 4, bias=False)
    merged = merge_linears(linears)
    shared = SharedProjection(lambda source: functional.linear(source, merged.weight), merged.sizes)
    first, second = torch.randn(2, 1, 3, 8)
    shared.part(0, first)
    torch.testing.assert_close(shared.part(1, second), linears[1](second))
    torch.testing.assert_close(shared.part(1, first), linears[1](first))


def test_what_is_not_merged():
    plain, other = projections(4, 4, bias=True)
    assert mergeable([plain, other])
    assert not mergeable([plain, *projections(4, bias=False)])
    assert not mergeable([plain, None])
    assert not mergeable([plain, other.half()])
    assert not mergeable([plain, torch.nn.Linear(9, 4)])
    assert not mergeable([plain, torch.nn.Sequential(plain)])
    plain.register_forward_hook(lambda *_: None)
    assert not mergeable([plain, plain])


def test_agree_is_strict_about_rows_types_and_errors():
    exact = torch.ones(3, 4)
    off = exact.clone()
    off[2] *= 1.001
    assert agree(lambda: exact, lambda: exact + 1e-7)
    assert not agree(lambda: exact, lambda: off)
    assert not agree(lambda: exact, lambda: exact.half())
    assert not agree(lambda: exact, lambda: exact[:2])
    assert not agree(lambda: exact * np.nan, lambda: exact * np.nan)
    assert not agree(lambda: exact @ exact, lambda: exact)


def test_a_wrong_fusion_is_undone_with_a_warning(interpreted):
    assert interpreted["wrong_fusion"] == [{"fused": 0, "wrong": 0, "warnings": 1}]
