"""The swap tier under the real engine: threads, restarts, prices, metrics."""

import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine._core import SwapStore
from engine.models.spec import Rope
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import oracle, toy_model, toy_spec

PATIENCE_S = 30
BLOCK = 4


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def started(tmp_path, **settings):
    settings = {"block_size": BLOCK, "swap_bytes": 1 << 20, "swap_dir": tmp_path} | settings
    engine, executor = toy_engine(toy_config(**settings))
    engine.start()
    engine.wait_ready(PATIENCE_S)
    return engine, executor


def answer(engine, tokens, **params):
    return engine.submit(ask(tokens, **params)).wait_result(PATIENCE_S)


def test_a_restarted_engine_copies_instead_of_computing(tmp_path):
    first, _ = started(tmp_path)
    before = answer(first, prompt(50))
    first.shutdown()
    second, executor = started(tmp_path)
    after = answer(second, prompt(50))
    second.shutdown()
    assert after.token_ids == before.token_ids == oracle(ask(prompt(50)))
    assert after.cached_tokens == 48
    assert executor.swapped_in == 12


@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        ({"weight_format": "Q8_0"}, {}),
        ({"spec": replace(toy_spec(), ropes=(Rope(5e5, 4, "half"),))}, {}),
        ({}, {"dispatch": "avx2"}),
    ],
    ids=["quantisation", "model", "setting"],
)
def test_07_a_restart_with_another_model_or_setting_reuses_no_block(tmp_path, facts, settings):
    """The swap file of the first engine is there, with the same tokens and blocks of the same size."""
    first, _ = started(tmp_path)
    answer(first, prompt(50))
    first.shutdown()
    model = toy_model()
    vars(model).update(facts)
    config = toy_config(block_size=BLOCK, swap_bytes=1 << 20, swap_dir=tmp_path, **settings)
    other, executor = toy_engine(config, model_opener=lambda config: model)
    other.start()
    output = answer(other, prompt(50))
    other.shutdown()
    assert output.cached_tokens == executor.swapped_in == 0
    assert output.token_ids == oracle(ask(prompt(50)))
    again, _ = started(tmp_path)
    assert answer(again, prompt(50)).cached_tokens == 48
    again.shutdown()


def test_a_price_counts_what_is_swapped_in_and_not_what_it_replaces(tmp_path):
    first, _ = started(tmp_path)
    answer(first, prompt(50))
    first.shutdown()
    second, _ = started(tmp_path)
    quoted = second.price(prompt(50))
    assert (quoted.prefill_tokens, quoted.swapped_blocks, quoted.copied_blocks) == (2, 12, 0)
    answer(second, prompt(50))
    again = second.price(prompt(50))
    assert (again.prefill_tokens, again.swapped_blocks) == (2, 0)
    second.shutdown()
    assert second.price(prompt(50)).swapped_blocks == 0


def test_metrics_equal_the_snapshot(tmp_path):
    engine, _ = started(tmp_path, blocks=16)
    for start in (1, 30, 60, 1):
        answer(engine, prompt(30, start))
    snapshot = engine.snapshot()
    families = text_string_to_metric_families(engine.metrics.render().decode())
    samples = {
        (sample.name, *(v for k, v in sorted(sample.labels.items()) if k != "model_name")): (
            sample.value
        )
        for family in families
        for sample in family.samples
    }
    engine.shutdown()
    swap = snapshot.swap
    assert swap.swapped_in >= 7
    assert samples["pravaha_swapped_blocks_total", "in"] == swap.swapped_in
    assert samples["pravaha_swapped_blocks_total", "out"] >= swap.swapped_out > 0
    assert samples["pravaha_swap_capacity_blocks",] == swap.capacity > 0
    assert samples["pravaha_swap_lost_blocks_total", "dropped"] == swap.dropped == 0
    assert samples["pravaha_swap_bytes_per_second", "in"] > 0
    hits = snapshot.totals.external_prefix_cache_hits
    for dialect in ("vllm:", "pravaha_"):
        assert samples[f"{dialect}external_prefix_cache_hits_total",] == hits >= 28
    assert samples["pravaha_kv_blocks", "swapped"] >= snapshot.blocks.swapped > 0


def test_a_killed_process_loses_no_saved_block(tmp_path):
    """In a separate process, which is killed while it runs."""
    path = tmp_path / "killed.swap"
    source = f"""
import os, signal
import numpy as np
from engine._core import BlockAllocator, PrefixTrie, SwapStore
store = SwapStore({str(path)!r}, identity=bytes(32), block_size=2, block_bytes=5000,
                  capacity_bytes=1 << 20)
pool = BlockAllocator(8, 2)
trie = PrefixTrie(pool)
trie.insert(b"toy", list(range(16)), pool.allocate(8))
_, entries = store.save_indexed(trie, 8)
data = np.repeat(np.arange(8, dtype=np.uint8)[:, None], 5000, 1)
store.fill(entries[:6].tolist(), data[:6])
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", source], timeout=PATIENCE_S)
    assert ended.returncode == -signal.SIGKILL
    store = SwapStore(
        path, identity=bytes(32), block_size=2, block_bytes=5000, capacity_bytes=1 << 20
    )
    assert store.notice is None
    entries = store.match_prefix(b"toy", list(range(16)))
    out = np.empty((6, 5000), np.uint8)
    assert store.read(entries.tolist(), out) == 6
    assert (out == np.arange(6)[:, None]).all()
    store.close()


def test_an_engine_takes_the_swap_file_over_when_another_one_has_closed_it(tmp_path):
    """As after a reload, where the new engine is loaded while the old one still has the file."""
    old, _ = started(tmp_path)
    answer(old, prompt(50))
    new, executor = started(tmp_path)
    assert new.snapshot().swap.capacity == 0
    old.shutdown()
    new.reopen_swap_tier()
    output = answer(new, prompt(50))
    assert output.cached_tokens == 48
    assert executor.swapped_in == 12
    assert output.token_ids == oracle(ask(prompt(50)))
    new.reopen_swap_tier()  # no effect
    assert answer(new, prompt(50)).cached_tokens == 48
    new.shutdown()
