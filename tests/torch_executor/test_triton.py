"""Tests of the Triton kernels without a GPU: their arithmetic is interpreted, their code compiled.

They measure no speed and do not show that compiled code agrees with the interpreter; `make gpu` does.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from engine.api.errors import ModelError
from engine.executors.torch.backends import choose_backend
from engine.executors.torch.decode_graphs import graph_sizes
from engine.executors.torch.devices import resolve_device
from engine.executors.torch.tiling import MAX_SPLITS, split_count, tile_keys, tile_queries

pytest.importorskip("triton")

SMALLEST_SHARED = 163 << 10
"""Maximum bytes of shared memory per block on compute capability 8.0; 9.0 has more."""


def lines_of(module, tmp_path, **environ):
    done = subprocess.run(
        [sys.executable, "-m", f"tests.torch_executor.{module}"],
        capture_output=True,
        text=True,
        env=os.environ | {"TRITON_CACHE_DIR": str(tmp_path)} | environ,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_interpreted_kernels_equal_the_reference(tmp_path):
    results = dict(lines_of("interpreted", tmp_path, TRITON_INTERPRET="1"))
    assert len(results) > 15
    for name, difference in results.items():
        limit = 5e-3 if name.endswith("f16") else 0 if name.endswith("greedy") else 2e-6
        assert difference <= limit, name


def test_the_kernels_compile_for_absent_gpus(tmp_path):
    for name, _, shared in lines_of("compiled", tmp_path):
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


def test_a_single_long_row_gets_many_splits_and_many_rows_few():
    long = {"kv_heads": 8, "longest_context": 8192, "processors": 132}
    assert split_count(tiles=1, **long) == MAX_SPLITS
    assert split_count(tiles=12, **long) == 4
    assert split_count(tiles=64, **long) == 1
    assert split_count(tiles=1, kv_heads=1, longest_context=100, processors=132) == 1


@pytest.mark.parametrize(("key_bytes", "keys"), [(32, 64), (256, 64), (512, 32), (2048, 16)])
def test_long_keys_use_small_tiles(key_bytes, keys):
    assert tile_keys(key_bytes=key_bytes) == keys
