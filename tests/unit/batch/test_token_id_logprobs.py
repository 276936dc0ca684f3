"""Logprobs of chosen token ids, against log-softmax of the raw logits."""

import threading
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from engine._core import BlockAllocator
from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, SamplingParams
from engine.batch.token_id_logprobs import TokenIdLogprobs
from engine.executors.base import MAX_LOGPROB_TOKEN_IDS
from engine.executors.reference_sampler import log_softmax
from tests.fakes.guesser import guess
from tests.fakes.toy_engine import ask, toy_engine
from tests.fakes.toy_executor import oracle, toy_logits
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import VOCAB_SIZE, ToyTokenizer

PROMPT = [(3 + 7 * i) % 90 for i in range(30)]


def cached_toy(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator} | settings)


def check(output, request):
    """Each token's values are log-softmax of the logits after the tokens before it."""
    known, ids = list(request.prompt_ids), list(request.sampling.logprob_token_ids)
    assert len(output.token_id_logprobs) == (len(output.token_ids) if ids else 0)
    for token, values in zip(output.token_ids, output.token_id_logprobs, strict=False):
        assert values == pytest.approx(log_softmax(toy_logits(known))[ids], abs=1e-6)
        known.append(token)


def test_one_token_decides_between_labels():
    toy = cached_toy()
    request = ask(PROMPT, max_tokens=1, logprob_token_ids=(65, 3, 65, 40))
    output = toy.submit(request)
    toy.run()
    check(output.wait_result(), request)


def test_nothing_is_reported_unless_requested():
    toy = cached_toy()
    plain, listed = ask(PROMPT), ask(PROMPT[:20], logprob_token_ids=(1, 2))
    handles = [toy.submit(plain), toy.submit(listed)]
    toy.run()
    assert handles[0].wait_result().token_id_logprobs == ()
    check(handles[1].wait_result(), listed)


def test_values_are_raw_whatever_changes_the_sample():
    toy = cached_toy()
    requests = [
        ask(PROMPT, logprob_token_ids=(5, 6), **params)
        for params in (
            {"temperature": 2.0, "seed": 3, "top_k": 4},
            {"logit_bias": ((5, 50.0), (6, -50.0))},
            {"repetition_penalty": 1.8, "presence_penalty": 1.5, "logprobs": 2},
            {"dry_multiplier": 2.0},
        )
    ]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    for handle, request in zip(handles, requests, strict=True):
        output = handle.wait_result()
        assert output.token_ids == oracle(request)
        check(output, request)


@given(
    budget=st.sampled_from([1, 2, 7, 32, 64]),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    listed=st.lists(st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=5), min_size=5, max_size=5),
    blocks=st.integers(18, 60),
    max_tokens=st.integers(1, 40),
)
@settings(max_examples=60)
def test_values_do_not_depend_on_chunking_batch_cache_or_preemption(
    budget, lengths, listed, blocks, max_tokens
):
    toy = cached_toy(budget=budget, blocks=blocks, rows=4)
    requests = [
        ask(
            [(number + 5 * i) % 90 for i in range(length)],
            max_tokens=min(max_tokens, 4 * blocks - length),
            logprob_token_ids=tuple(listed[number]),
        )
        for number, length in enumerate(lengths)
    ]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    for handle, request in zip(handles, requests, strict=True):
        output = handle.wait_result()
        assert output.token_ids == oracle(request)
        assert output.finish_reason is FinishReason.LENGTH
        check(output, request)
    assert len(toy.table.token_id_logprobs) == 0
    toy.assert_idle()


def test_a_preempted_request_keeps_its_values():
    toy = cached_toy()
    request = ask(PROMPT, max_tokens=30, logprob_token_ids=(1, 2, 3))
    handle = toy.submit(request)
    toy.step(20)
    toy.pipeline.scheduler.preempt(toy.row(handle))
    toy.run()
    check(handle.wait_result(), request)


def test_no_draft_is_proposed_for_such_a_row():
    toy = cached_toy()
    guesser = guess(toy, length=6, right=1.0, seed=0)
    plain = ask(PROMPT, max_tokens=24)
    listed = replace(ask(PROMPT, max_tokens=24, logprob_token_ids=(9, 8)), request_id="listed")
    handles = [toy.submit(plain), toy.submit(listed)]
    toy.run()
    outputs = [handle.wait_result() for handle in handles]
    assert outputs[0].token_ids == outputs[1].token_ids == oracle(plain)
    assert sum(guesser.accepted) > 0
    assert any(outputs[0].drafted)
    assert not any(outputs[1].drafted)
    check(outputs[1], listed)


def test_batches_join_to_the_whole():
    toy = cached_toy()
    request = ask(PROMPT, max_tokens=9, logprob_token_ids=(4, 2))
    handle = toy.submit(request)
    parts = []
    for _ in range(20):
        toy.step()
        batch = handle.drain()
        if batch is not None:
            assert len(batch.token_id_logprobs) == len(batch.token_ids)
            parts += batch.token_id_logprobs
    assert tuple(parts) == handle.wait_result().token_id_logprobs
    assert len(parts) == 9


def test_a_failed_row_ends_without_values_and_leaves_the_others_theirs():
    toy = cached_toy()
    toy.executor.poison = lambda history: history[0] == 80
    good = ask(PROMPT, max_tokens=5, logprob_token_ids=(1, 2))
    bad = ask([80, 1, 2], max_tokens=5, logprob_token_ids=(3,))
    handles = [toy.submit(bad), toy.submit(good)]
    toy.run()
    failed = handles[0].wait_result()
    assert failed.finish_reason is FinishReason.ERROR
    assert failed.token_id_logprobs == ()
    check(handles[1].wait_result(), good)


def test_a_stop_string_drops_the_values_with_its_tokens():
    toy = cached_toy()
    text = ToyTokenizer().decode(oracle(ask(PROMPT, max_tokens=20)))
    request = ask(PROMPT, max_tokens=20, stop=(text[3:5],), logprob_token_ids=(7,))
    handle = toy.submit(request)
    toy.run()
    output = handle.wait_result()
    assert output.finish_reason is FinishReason.STOP
    check(output, request)


@pytest.fixture
def gated():
    engine, executor = toy_engine()
    executor.gate = threading.Semaphore(2)  # a parent stays live until the test lets it go on
    engine.start()
    yield engine, executor.gate
    executor.gate.release(1000)
    engine.shutdown()


def test_forks_keep_the_token_ids_of_their_parent(gated):
    engine, gate = gated
    parent = engine.submit(ask(PROMPT, max_tokens=40, logprob_token_ids=(1, 5)))
    (child,) = engine.fork(parent.request_id, at=20)
    (other,) = engine.fork(
        parent.request_id, at=20, sampling=lambda params: replace(params, logprob_token_ids=())
    )
    gate.release(1000)
    assert child.request.sampling.logprob_token_ids == (1, 5)
    check(child.wait_result(30), child.request)
    assert other.wait_result(30).token_id_logprobs == ()


def test_a_grammar_does_not_mask_the_values(gated):
    engine, gate = gated
    gate.release(1000)
    grammar = Grammar.regex("[a-m]{4}")
    request = replace(
        ask(PROMPT), sampling=SamplingParams(logprob_token_ids=(1, 2, 3), grammar=grammar, seed=1)
    )
    output = engine.submit(request).wait_result(60)
    assert len(output.token_ids) == 4
    check(output, request)


@pytest.mark.parametrize(
    "ids", [(VOCAB_SIZE,), (-1,), (True,), (1.0,), tuple(range(MAX_LOGPROB_TOKEN_IDS + 1))]
)
def test_bad_token_ids_are_refused_by_name(ids):
    toy = cached_toy()
    with pytest.raises(InvalidRequest) as refused:
        toy.submit(ask(PROMPT, logprob_token_ids=ids))
    assert refused.value.param == "logprob_token_ids"


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, 99), min_size=1, max_size=4)),
        max_size=20,
    )
)
def test_entries_stay_sorted_by_row_in_the_order_asked(operations):
    entries, naive = TokenIdLogprobs(), {}
    for row, ids in operations:
        if row in naive:
            entries.release(row)
            del naive[row]
        else:
            entries.place(row, np.array(ids, np.int32), np.zeros((0, 0), np.float32))
            naive[row] = ids
        assert entries.rows.tolist() == [row for row in sorted(naive) for _ in naive[row]]
        assert entries.ids.tolist() == [one for row in sorted(naive) for one in naive[row]]
        assert len(entries) == len(naive)
