"""Forks. Numbers in names are those of `docs/reliability.md`."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.api.errors import InvalidRequest, QueueFull
from engine.api.request import FinishReason, Request, SamplingParams
from engine.runtime.forking import child_seed
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import ToyTokenizer

BLOCK = 4
PATIENCE_S = 30
HALF_WRITTEN = -9
"""In a KV slot: a step is writing it."""


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def forkable(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | settings)


def expected(child, parent):
    """The output of a fork according to the oracle, which has no forks."""
    start = min(len(parent.request.prompt_ids), len(child.request.prompt_ids))
    return oracle(child.request, penalty_start=start)


@pytest.mark.parametrize("prefixes", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_32_fork_then_both_generate_and_finish(steps, prefixes):
    toy = forkable(prefixes=prefixes)
    parent = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step(steps)
    held = toy.table.block_tables[toy.row(parent), : toy.table.num_blocks[toy.row(parent)]].copy()
    before = toy.blocks.refcounts()[held]
    computed = 9 + steps - 1
    (child,) = toy.fork(parent)
    toy.step()
    assert len(toy.executor.copies) == (computed % BLOCK > 0)
    whole = held[: computed // BLOCK]
    assert (toy.blocks.refcounts()[whole] == 2).all()
    (lengths,) = [lengths for _, lengths in toy.executor.steps[-1:]]
    assert lengths.tolist() == [1, 1]  # the child computes no more than its parent
    toy.step(2)
    child.abort()
    assert (toy.blocks.refcounts()[held] == before).all()
    (second,) = toy.fork(parent)
    toy.run()
    assert parent.drain().token_ids == oracle(parent.request)
    assert second.drain().token_ids == expected(second, parent)
    toy.assert_idle()


def test_33_a_fork_on_a_boundary_copies_nothing():
    toy = forkable()
    parent = toy.submit(ask(prompt(8), max_tokens=20))
    toy.step()
    children = toy.fork(parent, n=3)
    toy.step()
    assert toy.executor.copies == []
    toy.run()
    for child in children:
        assert child.drain().token_ids == expected(child, parent)


def test_34_appending_leaves_the_other_branchs_blocks_unchanged():
    toy = forkable()
    parent = toy.submit(ask(prompt(9), max_tokens=20, temperature=1.0, seed=3))
    toy.step()
    children = toy.fork(parent, n=3)
    toy.step(2)
    assert len(toy.executor.copies) == 3
    tails = toy.table.block_tables[[toy.row(each) for each in (parent, *children)], 2]
    assert len(set(tails.tolist())) == 4
    assert len({tuple(toy.executor.kv[tail, :2].tolist()) for tail in tails}) == 1
    toy.run()
    for each in (parent, *children):
        assert each.drain().token_ids == expected(each, parent)


@pytest.mark.parametrize("end", ["abort", "preempt"])
def test_35_a_parent_that_lost_its_row_is_forked_from_the_cache(end):
    toy = forkable(rows=1)
    parent = toy.submit(ask(prompt(10), max_tokens=20))
    toy.step(4)
    (child,) = toy.fork(parent)
    if end == "abort":
        parent.abort()
    else:
        toy.pipeline.scheduler.preempt(toy.row(parent))
    toy.run()
    assert child.drain().token_ids == expected(child, parent)
    toy.assert_idle()


def test_35_a_fork_of_a_request_that_still_waits():
    toy = forkable(rows=2)
    first = toy.submit(ask(prompt(30, 50), max_tokens=10))
    toy.step()
    parent = toy.submit(ask(prompt(10), max_tokens=5))
    (child,) = toy.fork(parent)
    toy.run()
    for each in (first, parent):
        assert each.drain().token_ids == oracle(each.request)
    assert child.drain().token_ids == expected(child, parent)


@pytest.mark.parametrize("prefixes", [True, False])
def test_a_fork_in_mid_prefill_waits_for_its_parent(prefixes):
    toy = forkable(budget=4, prefixes=prefixes)
    parent = toy.submit(ask(prompt(30), max_tokens=5))
    toy.step(2)
    children = toy.fork(parent, n=2)
    toy.run()
    assert toy.counters.totals().prompt_tokens == 30 + 2
    for child in children:
        assert child.drain().token_ids == expected(child, parent)


@pytest.mark.parametrize("at", [1, 4, 5, 7, 8, 9, 10, 12, 13])
def test_a_fork_at_an_earlier_token_copies_at_most_one_block(at):
    toy = forkable()
    parent = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step(6)
    (child,) = toy.fork(parent, at=at)
    assert child.request.prompt_ids == (*prompt(9), *oracle(parent.request))[:at]
    toy.run()
    assert len(toy.executor.copies) == ((at - 1) % BLOCK > 0)
    assert child.drain().token_ids == expected(child, parent)


@pytest.mark.parametrize("length", [4, 5, 6, 7])
def test_36_fork_while_a_step_writes_the_tail(length):
    """For each slot of a block: the slot that the step writes is not shared, the slots before it are."""
    engine, executor = toy_engine(toy_config(block_size=BLOCK))
    permits, writing = threading.Semaphore(0), threading.Semaphore(0)

    def begin_writing(plan):
        row, last = plan.rows[0], plan.positions[plan.query_start[1] - 1]
        executor.kv[plan.block_tables[row, last // BLOCK], last % BLOCK] = HALF_WRITTEN
        writing.release()
        assert permits.acquire(timeout=PATIENCE_S)

    executor.watch = begin_writing
    engine.start()
    parent = engine.submit(ask(prompt(length), max_tokens=20, temperature=1.0, seed=36))
    for _ in range(3):
        assert writing.acquire(timeout=PATIENCE_S)
        permits.release()
    assert writing.acquire(timeout=PATIENCE_S)
    (child,) = engine.fork(parent.request_id)  # the fourth step writes its token's KV meanwhile
    known = length + 3
    permits.release(1000)
    outputs = [handle.wait_result(PATIENCE_S) for handle in (parent, child)]
    engine.shutdown()
    assert outputs[0].token_ids == oracle(parent.request)
    assert outputs[1].token_ids == expected(child, parent)
    assert (
        outputs[0].token_ids[3:] != outputs[1].token_ids[: 20 - 3]
    )  # they append different tokens
    assert child.request.prompt_ids == (*prompt(length), *outputs[0].token_ids[:3])
    assert outputs[1].cached_tokens == known - 1
    assert len(executor.copies) == ((known - 1) % BLOCK > 0)


def test_37_children_have_seeds_of_their_own_and_replay():
    toy = forkable()
    parent = toy.submit(ask(prompt(10), max_tokens=25, temperature=1.0, seed=5))
    toy.step(3)
    children = [*toy.fork(parent, n=2), *toy.fork(parent, n=2)]
    assert [child.seed for child in children] == [child_seed(5, number) for number in (1, 2, 3, 4)]
    toy.run()
    texts = [each.drain() for each in (parent, *children)]
    assert len({batch.token_ids for batch in texts}) == 5
    for child, batch in zip(children, texts[1:], strict=True):
        assert batch.token_ids == expected(child, parent)


def test_37_penalties_count_the_parents_answer():
    toy = forkable()
    parent = toy.submit(ask(prompt(5), max_tokens=30, frequency_penalty=1.5, presence_penalty=1.0))
    toy.step(12)
    (child,) = toy.fork(parent)  # greedy: it must generate its parent's tokens
    toy.run()
    whole, rest = parent.drain(), child.drain()
    assert rest.token_ids == whole.token_ids[12:]
    assert rest.token_ids != oracle(child.request)  # whose prompt includes the parent's answer


def test_37_a_stop_string_may_begin_in_the_parent():
    letters = dict(enumerate(ToyTokenizer().encode("one EN")))
    toy = forkable(force=letters | dict(enumerate(ToyTokenizer().encode("D two"), 6)))
    parent = toy.submit(ask("hi", max_tokens=12, stop=("END",)))
    toy.step(6)
    (child,) = toy.fork(parent)
    toy.run()
    assert (parent.drain().text, child.drain().text) == ("one ", "")
    assert child.wait_result(0).finish_reason is FinishReason.STOP


def test_37_text_before_the_fork_is_the_parents():
    toy = forkable(force=dict(enumerate(ToyTokenizer().encode("one ENERGY"))))
    parent = toy.submit(ask("hi", max_tokens=10, stop=("END",)))
    toy.step(6)
    (child,) = toy.fork(parent)
    toy.run()
    assert (parent.drain().text, child.drain().text) == ("one ENERGY", "ERGY")


def test_37_a_character_split_by_the_fork_is_emitted_whole():
    toy = forkable(force=dict(enumerate(ToyTokenizer().encode("é!"))))
    parent = toy.submit(ask("hi", max_tokens=3))
    toy.step()
    (child,) = toy.fork(parent)
    toy.run()
    assert child.drain().text == "é!"


def test_38_continuation_is_from_stored_ids():
    toy = forkable()
    parent = toy.submit(ask(prompt(9), max_tokens=12))
    toy.run()
    ids = parent.drain().token_ids
    again = toy.submit(ask([*parent.request.prompt_ids, *ids], max_tokens=6))
    toy.run()
    longer = oracle(ask(prompt(9), max_tokens=18))
    assert again.drain().token_ids == longer[12:]
    assert again.wait_result(0).cached_tokens == 20


def test_a_fork_of_a_fork():
    toy = forkable()
    parent = toy.submit(ask(prompt(6), max_tokens=40, frequency_penalty=1.0))
    toy.step(5)
    (child,) = toy.fork(parent)
    toy.step(5)
    (grandchild,) = toy.fork(child)
    toy.run()
    whole = parent.drain().token_ids
    assert child.drain().token_ids == whole[5:]
    assert grandchild.drain().token_ids == whole[10:]


def test_other_sampling_for_the_children():
    toy = forkable()
    parent = toy.submit(ask(prompt(6), max_tokens=20))
    toy.step(3)
    sampling = SamplingParams(temperature=1.0, seed=9, max_tokens=4, ignore_eos=True)
    children = toy.fork(parent, n=2, sampling=sampling)
    assert [child.seed for child in children] == [child_seed(9, 1), child_seed(9, 2)]
    toy.run()
    assert all(child.drain().token_ids == expected(child, parent) for child in children)
    assert all(len(child.wait_result(0).token_ids) == 4 for child in children)


def test_what_cannot_be_forked_is_refused():
    engine, executor = toy_engine(toy_config(max_queue=2))
    executor.gate = threading.Semaphore(0)
    engine.start()
    parent = engine.submit(ask("hello"))
    assert executor.entered.acquire(timeout=PATIENCE_S)
    for arguments, param in (
        ({"request_id": "nobody"}, "request_id"),
        ({"n": 0}, "n"),
        ({"at": 0}, "at"),
        ({"at": 99}, "at"),
        ({"sampling": SamplingParams(top_p=0.0)}, "top_p"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            engine.fork(**{"request_id": parent.request_id} | arguments)
        assert caught.value.param == param
    with pytest.raises(QueueFull):
        engine.fork(parent.request_id, n=3)
    with pytest.raises(InvalidRequest, match="in use"):
        engine.fork(parent.request_id, n=2, request_ids=["twin", "twin"])
    executor.gate.release(1000)
    parent.wait_result(PATIENCE_S)
    assert engine.wait_drained(PATIENCE_S)
    with pytest.raises(InvalidRequest, match="No live request"):
        engine.fork(parent.request_id)
    engine.shutdown()
    assert sum(engine.snapshot().totals.finished.values()) == 1  # no child was queued


def test_price_is_what_a_request_then_costs():
    engine, _ = toy_engine(toy_config(block_size=BLOCK))
    engine.start()
    tokens = prompt(50)
    cold = engine.price(tokens)
    assert (cold.prefill_tokens, cold.copied_blocks, cold.seconds) == (50, 0, None)
    sampling = SamplingParams(temperature=0.0, max_tokens=1)
    engine.submit(Request(tuple(tokens), sampling)).wait_result(PATIENCE_S)
    for count in (50, 49, 48, 47, 3, 1):
        before = engine.snapshot().totals
        quoted = engine.price(tokens[:count])
        output = engine.submit(Request(tuple(tokens[:count]), sampling)).wait_result(PATIENCE_S)
        spent = engine.snapshot().totals
        assert quoted.prefill_tokens == spent.prompt_tokens - before.prompt_tokens
        assert quoted.prefill_tokens == count - output.cached_tokens
        assert quoted.copied_blocks == spent.copied_blocks - before.copied_blocks
        assert quoted.seconds > 0
    engine.shutdown()


def test_price_does_not_wait_for_a_step():
    engine, executor = toy_engine(toy_config(block_size=BLOCK))
    executor.gate = threading.Semaphore(0)
    engine.start()
    handle = engine.submit(ask(prompt(30)))
    assert executor.entered.acquire(timeout=PATIENCE_S)  # a step is under way, and stays so
    assert engine.price(prompt(30)).prefill_tokens == 30
    executor.gate.release(1000)
    handle.wait_result(PATIENCE_S)
    engine.shutdown()


def test_a_forks_blocks_are_where_its_table_says():
    toy = forkable()
    parent = toy.submit(ask(prompt(11), max_tokens=30, temperature=1.0, seed=1))
    toy.step(3)
    children = toy.fork(parent, n=4)
    toy.step(6)  # every step checks each row's KV against its tokens
    histories = [
        tuple(toy.table.token_table[toy.row(each), : toy.table.num_computed[toy.row(each)]])
        for each in (parent, *children)
    ]
    assert len(set(histories)) == 5
    shared = np.intersect1d(*toy.table.block_tables[[toy.row(each) for each in children[:2]], :3])
    assert shared.size == 3  # the first 12 of 13 shared tokens
    assert replace(children[0].request.sampling, seed=None, max_tokens=None) == replace(
        parent.request.sampling, seed=None, max_tokens=None
    )
