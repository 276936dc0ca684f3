"""Pinned prefixes under random traffic: they stay cached, and no request fails or starves for them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine._core import BlockAllocator
from engine.api.events import PrefixPinned, PrefixUnpinned
from engine.api.request import FinishReason
from engine.memory.kv_identity import NO_CACHE_SALT
from engine.memory.pinned_prefixes import MAX_PINS, MAX_SHARE, PinnedPrefixes
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4
BLOCKS = 16
STARTS = (1, 20, 40, 60)


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def toy_pipeline(**settings):
    toy = ToyPipeline(
        **{"allocator": BlockAllocator, "blocks": BLOCKS, "block_size": BLOCK} | settings
    )
    toy.told = []
    for kind in (PrefixPinned, PrefixUnpinned):
        toy.events.subscribe(kind, toy.told.append)
    return toy


def cached(toy, tokens):
    return toy.blocks.prefixes.match(np.array(tokens, np.int32), NO_CACHE_SALT)


def pin(toy, pin_id, tokens):
    toy.pipeline.pin(pin_id, np.array(tokens, np.int32))
    return toy.told[-1].blocks


actions = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(STARTS), st.integers(1, 40)),
    st.tuples(st.just("step"), st.integers(1, 6), st.none()),
    st.tuples(st.just("pin"), st.sampled_from(STARTS), st.integers(1, 48)),
    st.tuples(st.just("unpin"), st.sampled_from(STARTS), st.none()),
    st.tuples(st.just("abort"), st.integers(0, 9), st.none()),
)


@settings(max_examples=60)
@given(st.lists(actions, max_size=40))
def test_pins_hold_their_blocks_and_never_fail_a_request(script):
    toy = toy_pipeline()
    held = {}
    for action, number, size in script:
        if action == "submit":
            toy.submit(ask(prompt(size, number), max_tokens=6))
        elif action == "step":
            toy.step(number)
        elif action == "abort" and toy.handles:
            toy.handles[number % len(toy.handles)].abort()
        elif action == "pin":
            pin_id, tokens = f"pin-{number}", prompt(size, number)
            covered = pin(toy, pin_id, tokens)
            held[pin_id] = (tokens, cached(toy, tokens)[:covered].tolist())
            if not covered:
                del held[pin_id]
        elif action == "unpin":
            toy.pipeline.unpin(f"pin-{number}")
            held.pop(f"pin-{number}", None)
        for event in toy.told:
            if isinstance(event, PrefixUnpinned) and event.dropped:
                held.pop(event.pin_id, None)
        toy.told.clear()
        toy.blocks.check_integrity(toy.table)
        assert toy.blocks.counts().pinned <= BLOCKS * MAX_SHARE
        for tokens, blocks in held.values():
            assert cached(toy, tokens)[: len(blocks)].tolist() == blocks
    toy.run()
    failed = [one for one in toy.ended if one.mailbox.finish.reason is FinishReason.ERROR]
    too_large = [one for one in failed if len(one.tokens) > BLOCKS * BLOCK]
    assert failed == too_large
    for start in STARTS:
        toy.pipeline.unpin(f"pin-{start}")
    assert toy.blocks.counts().pinned == 0
    assert toy.blocks.num_free == BLOCKS


def test_a_pinned_prefix_survives_requests_that_evict_everything_else():
    toy = toy_pipeline()
    toy.submit(ask(prompt(16), max_tokens=1))
    toy.run()
    assert pin(toy, "mine", prompt(16)) == 4
    for start in (20, 30, 40, 50, 60):
        toy.submit(ask(prompt(24, start), max_tokens=4))
        toy.run()
    assert len(cached(toy, prompt(16))) == 4
    toy.pipeline.unpin("mine")
    for start in (25, 35, 45, 55, 65):
        toy.submit(ask(prompt(24, start), max_tokens=4))
        toy.run()
    assert len(cached(toy, prompt(16))) < 4


def test_a_request_that_needs_the_whole_pool_drops_the_oldest_pin():
    toy = toy_pipeline()
    toy.submit(ask(prompt(16), max_tokens=1))
    toy.run()
    pin(toy, "mine", prompt(16))
    handle = toy.submit(ask(prompt(60, 30), max_tokens=4))
    toy.run()
    assert handle.wait_result(1).finish_reason is FinishReason.LENGTH
    assert [event.dropped for event in toy.told if isinstance(event, PrefixUnpinned)] == [True]


def test_a_pin_covers_at_most_the_share_of_the_pool():
    toy = toy_pipeline()
    toy.submit(ask(prompt(48), max_tokens=1))
    toy.run()
    assert pin(toy, "long", prompt(48)) == BLOCKS * MAX_SHARE
    assert pin(toy, "same", prompt(48)) == BLOCKS * MAX_SHARE  # shares the blocks of the first
    assert pin(toy, "other", prompt(40, 5)) == 0


def test_what_is_not_cached_is_not_pinned():
    toy = toy_pipeline()
    assert pin(toy, "nothing", prompt(16)) == 0
    assert len(toy.blocks.pinned) == 0


def test_the_number_of_pins_is_bounded():
    allocator = BlockAllocator(8, BLOCK)
    pins = PinnedPrefixes(allocator)
    block = allocator.allocate(1)
    for number in range(MAX_PINS + 1):
        assert pins.pin(f"pin-{number}", block) == 1
    assert len(pins) == MAX_PINS
    assert pins.dropped == [("pin-0", 1)]
