"""The file of a model's swapped blocks, and opening without it."""

import fcntl
import os
from dataclasses import replace

import pytest

from engine._core import BlockAllocator, PrefixTrie
from engine.executors.base import ExecutorInfo
from engine.memory.swap_opening import (
    evict_swap_files,
    open_state_store,
    open_swap_tier,
    swap_identity,
)
from tests.fakes.recurrent_executor import RecurrentExecutor
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import ToyExecutor
from tests.fakes.windowed_executor import WindowedExecutor

INFO = ExecutorInfo("native", "avx2", 2, "Q4_1", 1000, "f16", 250)


def open_tier(tmp_path, *, executor=None, **settings):
    settings = {"swap_bytes": 1 << 20, "swap_dir": tmp_path} | settings
    return open_swap_tier(
        toy_config(**settings),
        salt=b"salt",
        index=PrefixTrie(BlockAllocator(8, 4)),
        executor=executor or ToyExecutor(8, 4),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "torch"},
        {"dispatch": "avx512"},
        {"weight_format": "Q8_0"},
        {"kv_dtype": "f32"},
    ],
)
def test_7_settings_resolved_while_loading_change_the_identity(changes):
    identity = swap_identity(b"salt", INFO, 128)
    assert len(identity) == 32
    assert identity == swap_identity(b"salt", replace(INFO, threads=9, parameters=1), 128)
    assert identity != swap_identity(b"salt", replace(INFO, **changes), 128)
    assert identity != swap_identity(b"other", INFO, 128)
    assert identity != swap_identity(b"salt", INFO, 256)


def test_each_identity_has_a_file_of_its_own(tmp_path):
    one = open_tier(tmp_path)
    other = ToyExecutor(8, 4)
    other.info = replace(other.info, dispatch="avx2")
    two = open_tier(tmp_path, executor=other)
    assert len(list(tmp_path.glob("*.swap"))) == 2
    one.close()
    two.close()


def test_a_bound_of_zero_creates_no_tier_and_no_folder(tmp_path):
    assert open_tier(tmp_path / "swap", swap_bytes=0) is None
    assert not (tmp_path / "swap").exists()


def test_a_gpus_pool_swaps_to_main_memory(tmp_path):
    executor = ToyExecutor(8, 4)
    executor.info = replace(executor.info, kv_in_main_memory=False)
    tier = open_tier(tmp_path, executor=executor)
    assert tier.counts().capacity > 0
    assert list(tmp_path.iterdir()) == []
    tier.close()


def test_a_file_in_use_means_no_tier_and_one_sentence(tmp_path, caplog):
    first = open_tier(tmp_path)
    assert open_tier(tmp_path) is None
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "The swap tier cannot be opened; the engine runs without one: the swap file"
    )
    assert "is in use by another Pravāha" in record.getMessage()
    first.close()


def test_a_damaged_file_is_replaced_with_one_sentence(tmp_path, caplog):
    open_tier(tmp_path).close()
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"not a swap file" * 1000)
    open_tier(tmp_path).close()
    (record,) = caplog.records
    assert "is not used, because it is no swap file; a new one is created" in record.getMessage()
    caplog.clear()
    open_tier(tmp_path).close()
    assert not caplog.records


def test_a_bound_that_holds_no_block_means_no_tier(tmp_path, caplog):
    assert open_tier(tmp_path, swap_bytes=100) is None
    assert "hold no entry" in caplog.text


def test_the_file_is_private(tmp_path):
    open_tier(tmp_path).close()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o077 == 0


def test_other_models_files_are_deleted_least_recently_used_first(tmp_path):
    for age, name in enumerate(("new", "old", "held")):
        path = tmp_path / f"{name}.swap"
        path.write_bytes(bytes(100_000))
        os.utime(path, (1e9 - age, 1e9 - age))
    kept = tmp_path / "kept.swap"
    kept.write_bytes(bytes(100_000))
    with (tmp_path / "held.swap").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        evict_swap_files(tmp_path, keep=kept, limit=250_000)
        assert {path.stem for path in tmp_path.iterdir()} == {"new", "held", "kept"}
    evict_swap_files(tmp_path, keep=kept, limit=0)
    assert [path.stem for path in tmp_path.iterdir()] == ["kept"]


def test_states_are_in_a_folder_beside_the_file_and_have_half_of_the_bound(tmp_path):
    executor = RecurrentExecutor(8, 4, num_slots=3)
    alone = open_tier(tmp_path / "alone")
    tier = open_tier(tmp_path, executor=executor)
    assert tier.counts().capacity < 0.6 * alone.counts().capacity
    config = toy_config(swap_bytes=1 << 20, swap_dir=tmp_path)
    store = open_state_store(config, executor.state_bytes, salt=b"salt", executor=executor)
    assert store.capacity == (1 << 19) // (executor.state_bytes + 48)
    (file,) = tmp_path.glob("*.swap")
    assert file.with_suffix(".states").is_dir()
    for one in (alone, tier, store):
        one.close()


def test_kept_windows_have_half_of_the_bound_too(tmp_path):
    executor = WindowedExecutor(8, 4, num_window_blocks=3, window=4, chunk=1)
    alone = open_tier(tmp_path / "alone")
    tier = open_tier(tmp_path, executor=executor)
    assert tier.counts().capacity < 0.6 * alone.counts().capacity
    config = toy_config(swap_bytes=1 << 20, swap_dir=tmp_path)
    store = open_state_store(config, 96, salt=b"salt", executor=executor)
    assert store.capacity == (1 << 19) // (96 + 48)
    for one in (alone, tier, store):
        one.close()


def test_the_states_of_a_gpus_model_are_in_main_memory(tmp_path):
    executor = RecurrentExecutor(8, 4, num_slots=3)
    executor.info = replace(executor.info, kv_in_main_memory=False)
    config = toy_config(swap_bytes=1 << 20, swap_dir=tmp_path)
    store = open_state_store(config, executor.state_bytes, salt=b"salt", executor=executor)
    assert store.capacity > 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_means_no_store_and_one_sentence(tmp_path, caplog):
    executor = RecurrentExecutor(8, 4, num_slots=3)
    config = toy_config(swap_bytes=1 << 20, swap_dir=tmp_path)
    identity = swap_identity(b"salt", executor.info, executor.block_bytes).hex()[:32]
    (tmp_path / f"{identity}.states").write_text("a file")
    assert open_state_store(config, executor.state_bytes, salt=b"salt", executor=executor) is None
    assert "Recurrent states and windows cannot be stored" in caplog.text


def test_the_states_of_another_model_count_and_go_with_its_file(tmp_path):
    for name in ("old", "kept"):
        (tmp_path / f"{name}.swap").write_bytes(bytes(10_000))
        (tmp_path / f"{name}.states").mkdir()
        (tmp_path / f"{name}.states" / "one.state").write_bytes(bytes(100_000))
    evict_swap_files(tmp_path, keep=tmp_path / "kept.swap", limit=200_000)
    assert len(list(tmp_path.iterdir())) == 4
    evict_swap_files(tmp_path, keep=tmp_path / "kept.swap", limit=100_000)
    assert {path.name for path in tmp_path.iterdir()} == {"kept.swap", "kept.states"}
