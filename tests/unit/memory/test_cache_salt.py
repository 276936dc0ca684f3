"""Cache salts: requests with different salts reuse none of each other's blocks, equal ones all of them.

The toy executor fails a step whose rows read KV that was written under another salt.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine._core import BlockAllocator
from engine.api.errors import InvalidRequest
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4
SALTS = [None, "one", "two"]


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def salted_toy(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | settings)


def asked(tokens, salt, **params):
    return replace(ask(tokens, **{"max_tokens": 5} | params), cache_salt=salt)


def cached_tokens(toy, request):
    handle = toy.submit(request)
    toy.run()
    output = handle.wait_result()
    assert output.token_ids == oracle(request)
    return output.cached_tokens


def evict_all(toy):
    toy.blocks.release(toy.blocks.allocate(toy.blocks.num_free))


@given(
    requests=st.lists(
        st.tuples(st.sampled_from(SALTS), st.integers(1, 30), st.sampled_from([1, 1, 40])),
        min_size=2,
        max_size=8,
    ),
    evictions=st.sets(st.integers(0, 7)),
    swap=st.sampled_from([0, 400]),
)
@settings(max_examples=25)
def test_a_salt_is_like_a_pool_of_its_own(requests, evictions, swap):
    shared = salted_toy(blocks=200, swap=swap)
    own = {salt: salted_toy(blocks=200, swap=swap) for salt in SALTS}
    for number, (salt, length, start) in enumerate(requests):
        if number in evictions:
            for toy in (shared, *own.values()):
                evict_all(toy)
        request = asked(prompt(length, start), salt)
        alone = replace(request, cache_salt=None)
        assert cached_tokens(shared, request) == cached_tokens(own[salt], alone)
    shared.assert_idle()


@pytest.mark.parametrize(
    ("salts", "prefills"), [(("one", "one"), 1), (("one", "two"), 2), (("one", None), 2)]
)
def test_running_requests_are_donors_only_for_their_salt(salts, prefills):
    toy = salted_toy()
    handles = [toy.submit(asked(prompt(22), salt)) for salt in salts]
    toy.run()
    assert toy.counters.totals().prompt_tokens == prefills * 22 + (prefills == 1)
    for handle in handles:
        assert handle.wait_result().token_ids == oracle(handle.request)


@pytest.mark.parametrize("steps", [2, 9])
def test_forks_have_their_parents_salt(steps):
    toy = salted_toy()
    parent = toy.submit(asked(prompt(22), "one", max_tokens=12))
    toy.step(steps)
    (child,) = toy.fork(parent)
    assert child.request.cache_salt == "one"
    toy.run()
    output = child.wait_result()
    assert output.cached_tokens > 0
    tokens = (*child.request.prompt_ids, *output.token_ids)
    whole = (len(tokens) - 1) // BLOCK * BLOCK
    for salt, found in [("two", 0), (None, 0), ("one", whole)]:
        assert cached_tokens(toy, asked(tokens, salt)) == found


def test_salts_stay_apart_in_a_swap_file_over_a_restart(tmp_path):
    settings = {"swap": 100, "swap_path": str(tmp_path / "toy.swap")}
    before = salted_toy(**settings)
    cached_tokens(before, asked(prompt(30), "one"))
    cached_tokens(before, asked(prompt(10), None))
    before.tier.close()
    after = salted_toy(**settings)
    assert cached_tokens(after, asked(prompt(30), "two")) == 0
    assert cached_tokens(after, asked(prompt(30), None)) == 8
    assert cached_tokens(after, asked(prompt(30), "one")) == 28
    totals = after.counters.totals()
    assert totals.external_prefix_cache_hits == 36
    after.tier.close()


def test_a_preempted_request_finds_the_blocks_of_its_salt():
    toy = salted_toy()
    handle = toy.submit(asked(prompt(22), "one", max_tokens=9))
    toy.step(3)
    toy.pipeline.scheduler.preempt(toy.row(handle))
    computed = toy.counters.totals().prompt_tokens
    toy.run()
    assert handle.wait_result().token_ids == oracle(handle.request)
    assert toy.counters.totals().prompt_tokens == computed


@pytest.mark.parametrize("salt", ["", "x" * 1025, 5, b"salt"])
def test_an_invalid_salt_is_refused(salt):
    with pytest.raises(InvalidRequest, match="cache_salt"):
        salted_toy().submit(asked(prompt(3), salt))


def test_a_salt_that_is_no_valid_unicode_is_one():
    toy = salted_toy()
    assert cached_tokens(toy, asked(prompt(9), "\ud800")) == 0
    assert cached_tokens(toy, asked(prompt(9), "\ud800")) == 8


def test_a_salt_is_not_printed():
    assert "secret" not in repr(asked(prompt(3), "secret"))
