"""The events that the engine publishes about requests and blocks."""

import numpy as np

from engine._core import BlockAllocator
from engine.api.event_ring import EventRing
from engine.api.events import (
    BlocksEvicted,
    BlocksSwappedIn,
    BlocksSwappedOut,
    PrefixHit,
    RequestFinished,
    RequestForked,
    RequestPreempted,
    RequestQueued,
    RequestScheduled,
)
from engine.runtime.pool_events import PERIOD_S, PoolEvents
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_pipeline import ToyPipeline

PATIENCE_S = 30
BLOCK = 4


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def followed(**settings):
    toy = ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | settings)
    ring = EventRing()
    ring.follow(toy.events)
    return toy, ring


def of_type(ring, kind):
    return [event for event in ring.since(0).events if type(event) is kind]


def test_a_cached_prompt_is_a_prefix_hit_with_its_tokens_and_blocks():
    toy, ring = followed()
    toy.submit(ask(prompt(9), max_tokens=2))
    toy.run()
    again = toy.submit(ask(prompt(11), max_tokens=2))
    toy.run()
    (hit,) = of_type(ring, PrefixHit)
    assert (hit.request_id, hit.tokens, hit.blocks, hit.copied_block) == (
        again.request_id, 8, 2, None,
    )  # fmt: skip


def test_a_completely_cached_prompt_names_the_block_it_copied():
    toy, ring = followed()
    toy.submit(ask(prompt(8), max_tokens=2))
    toy.run()
    toy.submit(ask(prompt(8), max_tokens=8))
    toy.step()
    (hit,) = of_type(ring, PrefixHit)
    assert (hit.tokens, hit.blocks) == (7, 1)
    assert hit.copied_block == toy.executor.copies[-1][1]


def test_a_fork_names_its_parent_and_the_block_it_copied():
    toy, ring = followed()
    parent = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step()
    (child,) = toy.fork(parent)
    toy.step()
    (fork,) = of_type(ring, RequestForked)
    assert (fork.request_id, fork.parent_id) == (child.request_id, parent.request_id)
    assert (fork.tokens, fork.blocks) == (9, 2)
    assert fork.copied_block == toy.table.block_tables[toy.row(child), 2]
    assert of_type(ring, PrefixHit) == []


def test_a_fork_on_a_boundary_shares_blocks_and_copies_none():
    toy, ring = followed()
    parent = toy.submit(ask(prompt(8), max_tokens=20))
    toy.step()
    (child,) = toy.fork(parent)
    toy.step()
    (fork,) = of_type(ring, RequestForked)
    assert (fork.request_id, fork.tokens, fork.blocks, fork.copied_block) == (
        child.request_id, 8, 2, None,
    )  # fmt: skip


def test_a_preemption_says_whether_its_blocks_are_swapped():
    toy, ring = followed(blocks=8)
    for start in (1, 40):
        toy.submit(ask(prompt(12, start), max_tokens=10))
    toy.run()
    events = of_type(ring, RequestPreempted)
    assert events
    assert not any(event.swapped for event in events)


def test_evictions_are_summed_over_a_period():
    toy, ring = followed(blocks=8)
    watch = PoolEvents(toy.events)
    for start in (1, 30, 60):
        toy.submit(ask(prompt(20, start), max_tokens=2))
        toy.run()
        watch.observe(toy.blocks, 0.0, idle=False)
    evicted = toy.blocks.num_evicted
    (first,) = of_type(ring, BlocksEvicted)
    watch.observe(toy.blocks, PERIOD_S, idle=False)
    assert sum(event.blocks for event in of_type(ring, BlocksEvicted)) == evicted > first.blocks


def test_an_idle_engine_publishes_its_sums_at_once():
    toy, ring = followed(blocks=8)
    watch = PoolEvents(toy.events)
    watch.observe(toy.blocks, 0.0, idle=False)
    for start in (1, 30):
        toy.submit(ask(prompt(20, start), max_tokens=2))
    toy.run()
    watch.observe(toy.blocks, 0.1, idle=True)
    assert sum(event.blocks for event in of_type(ring, BlocksEvicted)) == toy.blocks.num_evicted


def test_an_engine_keeps_the_story_of_a_request(tmp_path):
    engine, _ = toy_engine(toy_config(block_size=BLOCK, swap_bytes=1 << 20, swap_dir=tmp_path))
    engine.start()
    engine.submit(ask(prompt(50), max_tokens=4)).wait_result(PATIENCE_S)
    batch = engine.events_since(0)
    engine.shutdown()
    kinds = [type(event) for event in batch.events]
    for earlier, later in (
        (RequestQueued, RequestScheduled),
        (RequestScheduled, RequestFinished),
    ):
        assert kinds.index(earlier) < kinds.index(later)
    assert batch.next == len(batch.events)
    out = [e for e in engine.events_since(0).events if isinstance(e, BlocksSwappedOut)]
    assert sum(event.blocks for event in out) == 13

    second, _ = toy_engine(toy_config(block_size=BLOCK, swap_bytes=1 << 20, swap_dir=tmp_path))
    second.start()
    second.submit(ask(prompt(50), max_tokens=4)).wait_result(PATIENCE_S)
    swapped_in = [e for e in second.events_since(0).events if isinstance(e, BlocksSwappedIn)]
    second.shutdown()
    assert [event.blocks for event in swapped_in] == [12]


def test_forks_by_common_tokens_name_the_running_request():
    toy, ring = followed()
    toy.submit(ask(prompt(17), max_tokens=20))
    toy.step()
    toy.submit(ask(prompt(17), max_tokens=4))
    toy.step()
    events = [*of_type(ring, RequestForked), *of_type(ring, PrefixHit)]
    assert [event.tokens for event in events] == [16]
    assert np.all(toy.blocks.refcounts() <= 2)
