"""Tests of the attention kernels: interpreted and compiled without a GPU, and run where there is one."""

import weakref

import numpy as np
import pytest
import torch

from engine.api.errors import ModelError
from engine.executors.torch.backends import choose_backend
from engine.executors.torch.decode_graphs import DecodeGraphs, graph_sizes
from engine.executors.torch.devices import resolve_device
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.tiling import MAX_SPLITS, split_count, tile_keys, tile_queries
from engine.models.transformers_spec import KvLayer
from tests.torch_executor.running_cases import lines_of

pytest.importorskip("triton")

SMALLEST_SHARED = 163 << 10
"""Maximum bytes of shared memory per block on compute capability 8.0; 9.0 has more."""


LIMITS = {"greedy": 0, "bf16": 3e-2, "f16": 5e-3}
"""Largest difference of a result by the last word of its name; 2e-6 for any other, in float32."""


def check(results):
    assert len(results) > 15
    for name, difference in results.items():
        assert difference <= LIMITS.get(name.split()[-1], 2e-6), name


def test_interpreted_kernels_equal_the_reference(interpreted):
    check(dict(interpreted["kernel_cases"]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_kernels_on_a_gpu_equal_the_reference(tmp_path):
    check(dict(lines_of("kernel_cases", tmp_path)))


def test_the_kernels_compile_for_absent_gpus(tmp_path, monkeypatch):
    from tests.torch_executor.compiled import shared_memory  # which needs Triton

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for name, shared in shared_memory():
        assert shared <= SMALLEST_SHARED, name


def test_triton_on_a_cpu_is_an_error_outside_tests(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ModelError, match="needs a GPU"):
        choose_backend("triton", resolve_device("cpu"))
    assert choose_backend("auto", resolve_device("cpu")).name == "reference"


def test_tiles_cover_every_query_once():
    generator = np.random.default_rng(0)
    for group in (1, 3, 4, 8, 71):
        lengths = generator.integers(1, 200, 9)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        tiling = tile_queries(starts, group=group)
        covered = [
            (batch, query)
            for batch, first in zip(tiling.batch, tiling.first, strict=True)
            for query in range(first, min(first + tiling.queries, lengths[batch]))
        ]
        expected = [(row, query) for row, length in enumerate(lengths) for query in range(length)]
        assert sorted(covered) == expected


def test_graph_sizes_are_few_and_reach_the_limit():
    assert graph_sizes(1) == [1]
    assert graph_sizes(3) == [3, 2, 1]
    assert graph_sizes(20) == [20, 16, 8, 4, 2, 1]
    assert graph_sizes(100) == [100, 96, 80, 64, 56, 48, 40, 32, 24, 16, 8, 4, 2, 1]


def test_what_a_graph_reads_stays_alive():
    """A recorded graph does not keep its tensors: on a GPU it read memory that had been freed."""
    cpu = torch.device("cpu")
    pool = KvPool([KvLayer(1, 16, 16)], num_blocks=2, block_size=8, dtype=torch.float32, device=cpu)
    steps = []

    def compute(ids, positions, step):
        steps.append(weakref.ref(step))
        return torch.zeros(ids.shape[1], 3)

    def record(closure):
        logits = closure()
        return lambda: logits

    graphs = DecodeGraphs(compute, pool, max_rows=3, max_model_len=16, device=cpu, record=record)
    assert len(steps) == 2 * len(graph_sizes(3))
    assert all(step() is not None for step in steps)
    del graphs


def test_a_single_long_row_gets_many_splits_and_many_rows_few():
    long = {"kv_heads": 8, "longest_context": 8192, "processors": 132}
    assert split_count(tiles=1, **long) == MAX_SPLITS
    assert split_count(tiles=12, **long) == 4
    assert split_count(tiles=64, **long) == 1
    assert split_count(tiles=1, kv_heads=1, longest_context=100, processors=132) == 1


@pytest.mark.parametrize(("key_bytes", "keys"), [(32, 64), (256, 64), (512, 32), (2048, 16)])
def test_long_keys_use_small_tiles(key_bytes, keys):
    assert tile_keys(key_bytes=key_bytes) == keys
