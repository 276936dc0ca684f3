"""The swap tier. Numbers in names are those of `docs/reliability.md`."""

import resource
import threading

import numpy as np
import pytest

from engine._core import BlockAllocator, PrefixTrie, SwapStore
from engine.api.request import FinishReason
from engine.memory.swap_tier import SwapTier
from engine.memory.swap_writer import BUFFERS
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import ToyExecutor, oracle
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def swapping(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK, "swap": 100} | settings)


def evict_everything(toy):
    """Allocate and release every free block of the pool, which evicts what was cached."""
    toy.blocks.release(toy.blocks.allocate(toy.blocks.num_free))


def test_evicted_blocks_are_swapped_in_and_not_recomputed():
    toy = swapping()
    first = toy.submit(ask(prompt(22), max_tokens=10))
    toy.run()
    evict_everything(toy)
    assert len(toy.trie) == 0
    again = toy.submit(ask(prompt(22), max_tokens=10))
    toy.run()
    assert again.drain().cached_tokens == 20
    assert toy.executor.swapped_in == 5
    assert toy.counters.totals().prompt_tokens == 22 + 2
    assert again.wait_result(0).token_ids == first.wait_result(0).token_ids
    toy.assert_idle()


@pytest.mark.parametrize("length", [1, BLOCK, BLOCK + 1, 5 * BLOCK - 1, 5 * BLOCK, 5 * BLOCK + 1])
def test_the_last_token_of_a_prompt_is_computed_in_any_case(length):
    toy = swapping()
    for _ in range(2):
        handle = toy.submit(ask(prompt(length), max_tokens=5))
        toy.run()
        assert handle.drain().token_ids == oracle(handle.request)
        evict_everything(toy)
    assert handle.wait_result(0).cached_tokens == (length - 1) // BLOCK * BLOCK


@pytest.mark.parametrize("length", [BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 1])
def test_the_blocks_that_a_lookup_finds_are_those_that_a_request_reuses(length):
    toy = swapping()
    handle = toy.submit(ask(prompt(length), max_tokens=BLOCK + 1))
    toy.run()
    evict_everything(toy)
    salt = toy.sequences[handle.request.request_id].cache_salt
    found = toy.blocks.lookup_prefix(np.array(prompt(length), np.int32), salt)
    assert found == (0, (length - 1) // BLOCK)


def test_swapped_in_blocks_are_shared_at_once():
    toy = swapping()
    toy.submit(ask(prompt(21), max_tokens=1))
    toy.run()
    evict_everything(toy)
    handles = [toy.submit(ask(prompt(21), max_tokens=4)) for _ in range(3)]
    toy.run()
    assert toy.executor.swapped_in == 5
    assert [handle.drain().cached_tokens for handle in handles] == [20, 20, 20]


def test_28_a_prefix_cached_again_meanwhile_is_not_swapped_in():
    toy = swapping()
    toy.submit(ask(prompt(41), max_tokens=1))
    toy.run()
    evict_everything(toy)
    toy.submit(ask(prompt(21), max_tokens=1))
    toy.run()
    assert toy.executor.swapped_in == 5
    whole = toy.submit(ask(prompt(41), max_tokens=1))
    toy.run()
    assert whole.drain().cached_tokens == 40
    assert toy.executor.swapped_in == 10  # the first five were found in the pool


def test_22_a_swapped_out_request_resumes_with_the_same_tokens():
    toy = swapping(blocks=12, rows=2, context=60)
    handles = [
        toy.submit(ask(prompt(9, start), max_tokens=30, temperature=1.0, seed=start))
        for start in (1, 40)
    ]
    toy.run()
    totals = toy.counters.totals()
    assert totals.preemptions > 0
    assert toy.tier.victims_swapped == totals.preemptions
    assert toy.executor.swapped_in > 0
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)
    toy.assert_idle()


def test_the_swap_cost_counts_only_blocks_that_the_victim_alone_holds(monkeypatch):
    toy = swapping(rows=4)
    parent = toy.submit(ask(prompt(16), max_tokens=30, temperature=1.0, seed=1))
    toy.step()
    (child,) = toy.fork(parent)
    toy.step(10)
    asked = []
    monkeypatch.setattr(toy.tier, "is_cheaper", lambda blocks, _: asked.append(blocks.tolist()))
    row = toy.row(child)
    own = toy.table.block_tables[row, 4 : toy.table.num_indexed[row]].tolist()
    toy.pipeline.scheduler.preempt(row)
    assert asked == [own] == [asked[0][:2]]


def test_a_victim_that_is_cheaper_to_recompute_is_not_swapped_out(monkeypatch):
    toy = swapping(blocks=12, rows=2, context=60)
    monkeypatch.setattr(toy.tier, "is_cheaper", lambda blocks, recompute: False)
    handles = [toy.submit(ask(prompt(9, start), max_tokens=30)) for start in (1, 40)]
    toy.run()
    assert toy.tier.victims_recomputed == toy.counters.totals().preemptions > 0
    assert toy.executor.swapped_in == 0
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


def test_a_block_left_out_is_saved_after_its_next_use():
    toy = swapping()
    handle = toy.submit(ask(prompt(9), max_tokens=1))
    toy.run()
    blocks = toy.blocks.prefixes.match(np.array(prompt(9), np.int32), b"")
    toy.tier.skip_saving(blocks)
    assert not toy.tier.save_idle()
    again = toy.submit(ask(prompt(9), max_tokens=1))
    toy.run()
    assert toy.tier.save_idle()
    assert toy.tier.counts().blocks == 2
    assert again.wait_result(0).token_ids == handle.wait_result(0).token_ids


@pytest.mark.parametrize("saved", [True, False])
def test_the_swap_cost_counts_only_blocks_that_must_be_copied(saved):
    pool = BlockAllocator(8, BLOCK)
    trie = PrefixTrie(pool)
    store = SwapStore(
        None, identity=bytes(32), block_size=BLOCK, block_bytes=32, capacity_bytes=1 << 20
    )
    tier = SwapTier(store, trie, ToyExecutor(8, BLOCK), salt=b"toy", threaded=False)
    blocks = pool.allocate(4)
    trie.insert(b"toy", prompt(16), blocks)
    assert tier.is_cheaper(blocks, 0.001)  # nothing was measured: try it
    if saved:
        assert tier.save_idle()
    tier._writer.speed._sums = tier._read_speed._sums = (2000.0, 1.0)
    seconds = (4 if saved else 8) * 32 / 2000
    assert tier.is_cheaper(blocks, seconds * 1.01)
    assert not tier.is_cheaper(blocks, seconds * 0.99)
    assert tier.is_cheaper(blocks, None)


def test_23_abort_while_swapped_leaves_nothing_behind():
    toy = swapping(rows=2)
    handle = toy.submit(ask(prompt(30), max_tokens=30))
    toy.step(10)
    toy.pipeline.scheduler.preempt(toy.row(handle))
    evict_everything(toy)
    assert toy.tier.counts().blocks > 0
    assert len(toy.waiting) == 1
    handle.abort()
    assert handle.drain().finish_reason is FinishReason.ABORT
    toy.check()
    toy.assert_idle()


def test_35_a_fork_of_a_swapped_parent():
    toy = swapping(rows=2)
    parent = toy.submit(ask(prompt(10), max_tokens=30, temperature=1.0, seed=3))
    toy.step(8)
    toy.pipeline.scheduler.preempt(toy.row(parent))
    evict_everything(toy)
    children = toy.fork(parent, n=2)
    toy.run()
    assert toy.executor.swapped_in == 4  # sixteen tokens, once for all three
    assert parent.drain().token_ids == oracle(parent.request)
    for child in children:
        assert child.drain().token_ids == oracle(child.request, penalty_start=10)


def test_35_a_fork_of_an_evicted_branch():
    toy = swapping()
    parent = toy.submit(ask(prompt(10), max_tokens=30))
    toy.run()
    evict_everything(toy)
    ids = (*prompt(10), *parent.drain().token_ids)
    child = toy.submit(ask(ids[:27], max_tokens=5))
    toy.run()
    assert child.drain().cached_tokens == 24
    assert child.wait_result(0).token_ids == oracle(child.request)


class SlowStore:
    """A store whose `fill` waits for an event."""

    def __init__(self, store):
        self._store = store
        self.may_fill = threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def fill(self, entries, data):
        assert self.may_fill.wait(30)
        return self._store.fill(entries, data)


def slow_tier(num_blocks):
    pool = BlockAllocator(num_blocks, BLOCK)
    trie = PrefixTrie(pool)
    executor = ToyExecutor(num_blocks, BLOCK)
    store = SlowStore(
        SwapStore(
            None, identity=bytes(32), block_size=BLOCK, block_bytes=32, capacity_bytes=1 << 22
        )
    )
    tier = SwapTier(store, trie, executor, salt=b"toy")
    return pool, trie, executor, store, tier


def test_27_a_block_reused_during_its_swap_out_is_saved_as_it_was():
    pool, trie, executor, store, tier = slow_tier(4)
    blocks = pool.allocate(4)
    executor.kv[blocks] = np.arange(16).reshape(4, BLOCK)
    trie.insert(b"toy", prompt(16), blocks)
    pool.release(blocks[::-1])
    tier.save_victims(4)
    reused = pool.allocate(4)
    executor.kv[reused] = -1  # a step writes them while the tier still has nothing
    assert not store.match_prefix(b"toy", prompt(16)).size
    store.may_fill.set()
    tier.flush()
    target = np.arange(4, dtype=np.int32)
    assert tier.load(tier.find(np.array(prompt(16), np.int32), 0, 4, b""), target) == 4
    assert (executor.kv[target] == np.arange(16).reshape(4, BLOCK)).all()
    tier.close()


def test_a_slow_tier_drops_blocks_and_delays_no_step():
    pool, trie, _, store, tier = slow_tier(1000)
    for number in range(BUFFERS + 1):
        blocks = pool.allocate(64)
        trie.insert(b"toy", [number, *prompt(64 * BLOCK)[1:]], blocks)
        pool.release(blocks[::-1])
        free = pool.stats().free
        tier.save_victims(free + 64 * (number + 1))
    assert tier.swapped_out == 64 * BUFFERS
    assert tier.dropped == 64
    store.may_fill.set()
    tier.close()


def test_blocks_that_cannot_be_copied_are_recomputed(caplog):
    toy = swapping()
    for start, fails in ((1, False), (1, True), (50, True)):
        toy.executor.fail_swap = fails
        handle = toy.submit(ask(prompt(22, start), max_tokens=6))
        toy.run()
        assert handle.drain().token_ids == oracle(handle.request)
        evict_everything(toy)
    assert toy.executor.swapped_in == 0
    assert "could not be swapped in: broken" in caplog.text
    assert "could not be swapped out: broken" in caplog.text
    toy.assert_idle()


def test_a_damaged_block_is_recomputed(tmp_path):
    path = tmp_path / "toy.swap"
    toy = swapping(swap_path=path)
    toy.submit(ask(prompt(22), max_tokens=1))
    toy.run()
    evict_everything(toy)
    with path.open("r+b") as file:
        file.seek(4096 + 2 * 4096)  # the third block
        file.write(b"\xff" * 8)
    again = toy.submit(ask(prompt(22), max_tokens=6))
    toy.run()
    assert again.drain().cached_tokens == 8
    assert again.wait_result(0).token_ids == oracle(again.request)
    assert toy.tier.counts().damaged == 1
    toy.assert_idle()


@pytest.mark.parametrize("flushed", [True, False], ids=["shut down", "killed"])
def test_a_restart_finds_what_was_saved(tmp_path, flushed):
    path = tmp_path / "toy.swap"
    toy = swapping(swap_path=path)
    toy.submit(ask(prompt(22), max_tokens=10))
    toy.run()
    if flushed:
        toy.tier.close()
    else:
        toy.tier.save_idle()
        toy.store.close()  # which writes nothing
    toy = swapping(swap_path=path)
    again = toy.submit(ask(prompt(22), max_tokens=10))
    toy.run()
    assert again.drain().cached_tokens == 20
    assert again.wait_result(0).token_ids == oracle(again.request)
    totals = toy.counters.totals()
    assert (totals.external_prefix_cache_queries, totals.external_prefix_cache_hits) == (22, 20)
    assert totals.prefix_cache_hits == 0
    toy.tier.close()


@pytest.mark.parametrize("entries", [1, 2, 3, 7])
def test_a_tier_smaller_than_a_conversation_keeps_its_beginning(entries):
    toy = swapping(swap=entries)
    for _ in range(3):
        handle = toy.submit(ask(prompt(40), max_tokens=3))
        toy.run()
        assert handle.drain().token_ids == oracle(handle.request)
        evict_everything(toy)
    assert handle.wait_result(0).cached_tokens == entries * BLOCK


@pytest.mark.parametrize("swap", [0, 6, 200])
def test_twice_the_pool_in_demand_changes_no_token(swap):
    requests = [ask(prompt(13, start * 7), max_tokens=20) for start in range(8)]
    toy = swapping(blocks=8 * 9 // 2, rows=8, swap=swap)
    handles = [toy.submit(request) for request in requests]
    toy.run()
    assert toy.counters.totals().preemptions > 0
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)
    toy.assert_idle()


def test_a_full_disk_only_stops_growth(tmp_path):
    size = 1 << 20
    store = SwapStore(
        tmp_path / "s", identity=bytes(32), block_size=1, block_bytes=size, capacity_bytes=64 * size
    )
    pool = BlockAllocator(8, 1)
    trie = PrefixTrie(pool)
    blocks = pool.allocate(8)
    trie.insert(b"toy", list(range(8)), blocks)
    _, entries = store.save_indexed(trie, 8)
    bytes_of = [np.full((1, size), number, np.uint8) for number in range(8)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 * size // 2, limits[1]))
    written = []
    try:
        for entry, data in zip(entries.tolist(), bytes_of, strict=True):
            try:
                written.append(store.fill([entry], data))
            except OSError:
                written.append("refused")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert written == [1, 1, "refused", 0, 0, 0, 0, 0]
    store.check_integrity()
    assert store.stats().entries == 2
    assert store.stats().capacity < 63
    found = store.match_prefix(b"toy", list(range(8))).tolist()
    out = np.empty((2, size), np.uint8)
    assert (found, store.read(found, out)) == (entries[:2].tolist(), 2)
    assert (out[1] == 1).all()
