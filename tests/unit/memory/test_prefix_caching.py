"""Prefix sharing. Numbers in names are those of `docs/reliability.md`."""

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.api.errors import ExecutorError
from engine.api.request import FinishReason
from engine.api.snapshot import BlockState
from engine.memory.reuse import Reuse
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def cached_toy(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | settings)


def answer(toy, request):
    handle = toy.submit(request)
    toy.run()
    batch = handle.drain()
    assert batch.token_ids == oracle(request)
    return batch


def find_nothing(toy):
    """Make every later prefix lookup miss."""
    nothing = Reuse(np.zeros(0, np.int32), 0, 0)
    toy.pipeline.scheduler.admission.reuse.find = lambda sequence, running: nothing


def computed(toy):
    """Prompt tokens computed so far."""
    return toy.counters.totals().prompt_tokens


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_01_a_prompt_of_whole_blocks_cold_then_cached(blocks):
    toy = cached_toy()
    request = ask(prompt(blocks * BLOCK), max_tokens=6)
    assert answer(toy, request).cached_tokens == 0
    before = computed(toy)
    assert answer(toy, ask(request.prompt_ids, max_tokens=6)).cached_tokens == blocks * BLOCK - 1
    assert computed(toy) == before + 1
    assert len(toy.executor.copies) == 1


@pytest.mark.parametrize("length", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1, 255])
def test_02_boundary_lengths_cold_then_cached(length):
    toy = cached_toy()
    for _ in range(3):
        answer(toy, ask(prompt(length), max_tokens=None if length == 255 else 5))
    toy.assert_idle()


def test_03_two_identical_prompts_in_one_step_are_one_prefill():
    toy = cached_toy(budget=8)
    requests = [ask(prompt(30), max_tokens=5) for _ in range(2)]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    assert [handle.drain().token_ids for handle in handles] == [oracle(r) for r in requests]
    assert computed(toy) == 30 + 1
    assert handles[1]._mailbox.cached_tokens == 29


def test_03_many_prompts_with_one_prefix_compute_it_once():
    toy = cached_toy(blocks=200, rows=8, budget=16)
    shared = prompt(41)
    requests = [ask(shared + [60 + i] * 3, max_tokens=5) for i in range(20)]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    for handle, request in zip(handles, requests, strict=True):
        assert handle.drain().token_ids == oracle(request)
    # Whole blocks are computed once; each request may compute the prefix's partial last block.
    assert computed(toy) <= 41 + 20 * (3 + 41 % BLOCK)


def test_03_waiting_for_a_shared_prefill_does_not_block_later_requests():
    toy = cached_toy(budget=32)
    toy.submit(ask(prompt(40), max_tokens=3))
    twin = toy.submit(ask(prompt(40), max_tokens=3))
    other = toy.submit(ask(prompt(3, 70), max_tokens=2))
    toy.step(2)
    assert toy.row(twin) == -1
    assert toy.row(other) != -1
    toy.run()
    assert twin.drain().token_ids == oracle(twin.request)


@pytest.mark.parametrize("end", ["abort", "fail", "preempt"])
def test_03_waiting_stops_when_the_shared_prefill_is_lost(end):
    toy = cached_toy(budget=4)
    first = toy.submit(ask(prompt(40), max_tokens=3))
    second = toy.submit(ask(prompt(40), max_tokens=3))
    toy.step(3)
    assert toy.row(second) == -1
    if end == "abort":
        first.abort()
    elif end == "fail":
        toy.executor.fail_with = [ExecutorError("broken")]
        toy.step()
    else:
        toy.pipeline.scheduler.preempt(toy.row(first))
    toy.run()
    assert second.drain().token_ids == oracle(second.request)
    assert second._mailbox.cached_tokens >= 2 * BLOCK  # the part that the first one computed
    if end == "preempt":
        assert first.drain().token_ids == oracle(first.request)
    toy.assert_idle()


def test_04_a_block_computed_twice_is_released():
    """Two requests grow into the same tokens; one copy of each block stays."""
    toy = cached_toy(rows=2)
    request = ask(prompt(6), max_tokens=12)
    first = toy.submit(request)
    toy.step(2)
    grown = list(request.prompt_ids) + list(oracle(request)[:12])
    find_nothing(toy)
    second = toy.submit(ask(grown[:7], max_tokens=11))
    toy.run()
    assert first.drain().token_ids == oracle(request)
    assert second.drain().token_ids == oracle(second.request)
    toy.assert_idle()
    assert len(toy.trie) == 17 // BLOCK  # the last sampled token has no KV


def test_04_both_hold_the_indexed_copy_while_they_run():
    toy = cached_toy(rows=2)
    first = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step()
    find_nothing(toy)
    second = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step()
    rows = [toy.row(first), toy.row(second)]
    tables = toy.table.block_tables[rows, :2]
    assert (tables[0] == tables[1]).all()
    assert (toy.blocks.refcounts()[tables[0]] == 2).all()
    toy.run()


def test_05_a_preempted_request_resumes_from_its_own_blocks():
    toy = cached_toy(blocks=64)
    request = ask(prompt(30), max_tokens=20)
    handle = toy.submit(request)
    toy.step(10)
    toy.pipeline.scheduler.preempt(toy.row(handle))
    toy.executor.steps.clear()
    toy.step()
    ((_, lengths),) = toy.executor.steps
    assert lengths.tolist() == [40 - 36]  # 40 tokens known, 36 of them in whole blocks
    toy.run()
    assert handle.drain().token_ids == oracle(request)


def test_05_preemption_under_pressure_with_shared_prefixes():
    toy = cached_toy(blocks=12, rows=6)
    requests = [ask([*prompt(9), 70 + i], max_tokens=18) for i in range(6)]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    assert toy.counters.totals().preemptions
    for handle, request in zip(handles, requests, strict=True):
        assert handle.drain().token_ids == oracle(request)
    toy.assert_idle()


def test_07_another_salt_shares_no_block():
    toy = cached_toy()
    answer(toy, ask(prompt(20)))
    tokens = np.array(prompt(20), np.int32)
    assert len(toy.trie.match_prefix(b"toy", tokens)) == 5
    assert len(toy.trie.match_prefix(b"another model", tokens)) == 0


def test_08_the_least_recently_used_goes_first_and_leaves_before_parents():
    toy = cached_toy(blocks=12)
    for start in (1, 30, 60):
        answer(toy, ask(prompt(13, start), max_tokens=1))  # three full blocks each
    answer(toy, ask(prompt(13, 1), max_tokens=1))  # used again
    answer(toy, ask(prompt(20, 80), max_tokens=1))  # needs five; three are free
    found = [
        len(toy.blocks.prefixes.match(np.array(prompt(12, s), np.int32), b"")) for s in (1, 30, 60)
    ]
    assert found == [3, 1, 3]


def test_09_what_does_not_fit_evicts_nothing():
    toy = cached_toy(blocks=10)
    answer(toy, ask(prompt(13), max_tokens=1))
    running = toy.submit(ask(prompt(8, 50), max_tokens=12))
    toy.step()
    large = toy.submit(ask(prompt(33, 20), max_tokens=1))
    toy.step()
    assert toy.row(large) == -1
    assert len(toy.blocks.prefixes.match(np.array(prompt(12), np.int32), b"")) == 3
    toy.run()
    assert running.finished
    assert large.drain().token_ids == oracle(large.request)


def test_10_a_match_that_ends_inside_a_block_takes_whole_blocks():
    toy = cached_toy()
    answer(toy, ask(prompt(20), max_tokens=1))
    batch = answer(toy, ask([*prompt(10), 77, 78, 79], max_tokens=3))
    assert batch.cached_tokens == 8
    toy.assert_idle()


def test_12_retrying_the_front_of_the_queue_hashes_nothing():
    toy = cached_toy(blocks=10)
    looked_up = []
    match = toy.blocks.prefixes.match
    toy.blocks.prefixes.match = lambda tokens, salt: (
        looked_up.append(len(tokens)) or match(tokens, salt)
    )
    toy.submit(ask(prompt(20, 50), max_tokens=12))
    toy.step()
    looked_up.clear()
    large = toy.submit(ask(prompt(28), max_tokens=2))
    toy.blocks.check_integrity()
    watched = toy.check
    toy.check = lambda: None  # it matches, too
    toy.step(8)
    assert toy.row(large) == -1
    assert looked_up == [28]
    toy.check = watched
    toy.run()
    assert large.drain().token_ids == oracle(large.request)


@pytest.mark.parametrize("length", [16, 15, 13])
def test_13_a_full_pool_whose_only_evictable_blocks_are_the_hit(length):
    toy = cached_toy(blocks=4)
    answer(toy, ask(prompt(16), max_tokens=1))
    assert (toy.blocks.states() == BlockState.CACHED).sum() == 4
    batch = answer(toy, ask(prompt(length), max_tokens=1))
    assert batch.cached_tokens == 12  # without room for a copy, the last block is computed again
    toy.assert_idle()


def test_16_one_request_that_outgrows_the_pool_finishes_with_an_error():
    toy = cached_toy(blocks=4)
    answer(toy, ask(prompt(12), max_tokens=2))
    handle = toy.submit(ask(prompt(12), max_tokens=50))
    toy.run(limit=100)
    batch = handle.drain()
    assert batch.finish_reason is FinishReason.ERROR
    assert "KV pool holds 16" in batch.error
    toy.assert_idle()


def test_17_and_18_a_full_pool_neither_thrashes_nor_admits_after_a_preemption():
    toy = cached_toy(blocks=16, rows=8)
    requests = [ask([*prompt(12), 40 + i], max_tokens=24) for i in range(8)]
    handles = [toy.submit(request) for request in requests]
    schedule = toy.pipeline.scheduler.schedule

    def watch(now):
        decision = schedule(now)
        assert not (decision.preempted and decision.admitted)
        return decision

    toy.pipeline.scheduler.schedule = watch
    toy.run(limit=400)
    for handle, request in zip(handles, requests, strict=True):
        assert handle.drain().token_ids == oracle(request)
    assert toy.counters.totals().preemptions < 40


def test_generated_tokens_are_indexed_like_prompts():
    toy = cached_toy()
    request = ask(prompt(6), max_tokens=15)
    answer(toy, request)
    longer = [*request.prompt_ids, *oracle(request), 5, 6]
    assert answer(toy, ask(longer, max_tokens=3)).cached_tokens == 20


def test_a_failed_step_is_not_indexed():
    toy = cached_toy(budget=8)
    handle = toy.submit(ask(prompt(30), max_tokens=3))
    toy.step()
    toy.executor.fail_with = [ExecutorError("broken")]
    toy.step()
    assert handle.drain().finish_reason is FinishReason.ERROR
    assert len(toy.trie) == 2  # of the step that succeeded


def test_a_row_with_nan_logits_is_not_indexed():
    toy = cached_toy()
    handle = toy.submit(ask(prompt(9), max_tokens=3))
    toy.executor.poison = lambda history: True
    toy.step()
    assert handle.drain().finish_reason is FinishReason.ERROR
    assert len(toy.trie) == 0


def test_a_failed_copy_ends_the_step_and_leaks_nothing():
    toy = cached_toy()
    answer(toy, ask(prompt(8), max_tokens=1))
    toy.executor.copy_blocks = lambda sources, targets: 1 / 0
    handle = toy.submit(ask(prompt(8), max_tokens=1))
    toy.run()
    assert handle.drain().error == "The step failed: division by zero."
    toy.assert_idle()
    assert len(toy.trie) == 2


def test_without_prefix_caching_nothing_is_cached_or_counted():
    toy = cached_toy(prefixes=False)
    for _ in range(2):
        assert answer(toy, ask(prompt(20), max_tokens=3)).cached_tokens == 0
    totals = toy.counters.totals()
    assert (totals.prefix_cache_queries, totals.prefix_cache_hits, totals.prompt_tokens) == (
        0,
        0,
        40,
    )
    assert (toy.blocks.states() == BlockState.FREE).all()


def test_the_counters_add_up():
    toy = cached_toy()
    for length in (10, 20, 20, 16):
        answer(toy, ask(prompt(length), max_tokens=2))
    totals = toy.counters.totals()
    assert totals.prefix_cache_queries == 66
    assert totals.prefix_cache_hits == 8 + 19 + 15
    assert totals.prompt_tokens + totals.prefix_cache_hits == totals.prefix_cache_queries
    counts = toy.blocks.counts()
    assert (counts.active, counts.cached) == (0, len(toy.trie))


def test_steps_that_fill_no_block_do_not_call_the_index():
    toy = cached_toy(block_size=16)
    toy.submit(ask(prompt(3), max_tokens=20))
    calls = []
    index_rows = toy.trie.index_rows
    spy = type("Spy", (), {"match_prefix": toy.trie.match_prefix})()
    spy.index_rows = lambda *arguments: (
        calls.append(arguments[3].tolist()) or index_rows(*arguments)
    )
    toy.blocks.prefixes._index = spy
    toy.run()
    assert calls == [[0]]  # 22 tokens with KV: one block filled


def test_a_donors_newest_token_has_no_kv_to_share():
    toy = cached_toy(block_size=16)
    donor = toy.submit(ask(prompt(6), max_tokens=20))
    toy.step(3)  # nine tokens known, eight computed
    tokens = [*prompt(6), *oracle(donor.request)[:3], 77]
    late = toy.submit(ask(tokens, max_tokens=4))
    toy.step()
    assert late._mailbox.cached_tokens == 8
    toy.run()
    assert late.drain().token_ids == oracle(late.request)
    assert donor.drain().token_ids == oracle(donor.request)
