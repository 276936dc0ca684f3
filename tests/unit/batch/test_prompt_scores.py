"""Prompt logprobs with chunked prefill, prefix caching and preemption, against log-softmax."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from engine._core import BlockAllocator
from engine.api.request import FinishReason
from engine.batch.sequence import NO_ROW
from engine.executors.reference_sampler import log_softmax
from tests.fakes.naive_allocator import NaiveAllocator
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle, toy_logits
from tests.fakes.toy_pipeline import ToyPipeline

PROMPT = [(3 + 7 * i) % 90 for i in range(30)]


def cached_toy(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator} | settings)


def expected(prompt):
    """(logprob, rank, order of all tokens) of every token but the first, by definition."""
    entries = []
    for at in range(1, len(prompt)):
        logits = toy_logits(prompt[:at])
        order = np.argsort(-logits, kind="stable").tolist()
        entries.append((log_softmax(logits)[prompt[at]], order.index(prompt[at]) + 1, order))
    return entries


def check(scores, prompt, alternatives):
    assert len(scores.logprobs) == len(scores.ranks) == len(scores.top) == len(prompt) - 1
    for at, (logprob, rank, order) in enumerate(expected(prompt)):
        assert scores.logprobs[at] == pytest.approx(logprob, abs=1e-6)
        assert scores.ranks[at] == rank
        assert [top.token_id for top in scores.top[at]] == order[:alternatives]
        own = log_softmax(toy_logits(prompt[: at + 1]))
        for top in scores.top[at]:
            assert top.logprob == pytest.approx(own[top.token_id], abs=1e-6)


def test_prompt_logprobs_come_once_with_the_first_tokens():
    toy = cached_toy()
    request = ask(PROMPT, prompt_logprobs=2, max_tokens=4)
    handle = toy.submit(request)
    toy.step()
    first = handle.drain()
    check(first.prompt_logprobs, PROMPT, 2)
    toy.run()
    assert handle.drain().prompt_logprobs is None
    check(handle.wait_result().prompt_logprobs, PROMPT, 2)


def test_no_prompt_logprobs_unless_requested():
    toy = cached_toy()
    handle = toy.submit(ask(PROMPT))
    other = toy.submit(ask(PROMPT[:20], prompt_logprobs=0))
    toy.run()
    assert handle.drain().prompt_logprobs is None
    check(other.drain().prompt_logprobs, PROMPT[:20], 0)


@given(
    budget=st.sampled_from([1, 2, 7, 32, 64]),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    alternatives=st.integers(0, 20),
    blocks=st.integers(14, 60),
    max_tokens=st.integers(0, 12),
)
@settings(max_examples=60)
def test_prompt_logprobs_do_not_depend_on_chunking_batch_cache_or_preemption(
    budget, lengths, alternatives, blocks, max_tokens
):
    toy = cached_toy(budget=budget, blocks=blocks, rows=4)
    handles = []
    for number, length in enumerate(lengths):
        prompt = PROMPT[:length] if number % 2 else [(number + 5 * i) % 90 for i in range(length)]
        params = {"prompt_logprobs": alternatives} if number % 3 else {}
        handles.append(toy.submit(ask(prompt, max_tokens=max_tokens, **params)))
    toy.run()
    for number, handle in enumerate(handles):
        output = handle.wait_result()
        assert output.token_ids == oracle(handle.request)
        assert output.finish_reason is FinishReason.LENGTH
        if number % 3:
            check(output.prompt_logprobs, handle.request.prompt_ids, alternatives)
        else:
            assert output.prompt_logprobs is None
    toy.assert_idle()


def test_a_cached_prompt_is_computed_again_for_its_scores():
    toy = cached_toy()
    toy.submit(ask(PROMPT, max_tokens=2))
    toy.run()
    before = toy.counters.totals().prompt_tokens
    handle = toy.submit(ask(PROMPT, prompt_logprobs=1, max_tokens=2))
    toy.run()
    output = handle.wait_result()
    check(output.prompt_logprobs, PROMPT, 1)
    assert output.cached_tokens == 0
    assert toy.counters.totals().prompt_tokens == before + len(PROMPT)


def test_a_preempted_request_scores_no_token_twice():
    toy = cached_toy(budget=8)
    handle = toy.submit(ask(PROMPT, prompt_logprobs=1, max_tokens=2))
    toy.step(2)
    scored = []
    toy.executor.watch = lambda plan: scored.extend(plan.score_targets.tolist())
    toy.pipeline.scheduler.preempt(toy.row(handle))
    toy.run()
    check(handle.wait_result().prompt_logprobs, PROMPT, 1)
    assert scored == PROMPT[17:]


@pytest.mark.parametrize("wanted", [None, 3])
def test_max_tokens_0_computes_the_prompt_and_generates_nothing(wanted):
    toy = cached_toy(budget=16)
    handle = toy.submit(ask(PROMPT, prompt_logprobs=wanted, max_tokens=0))
    toy.run()
    output = handle.wait_result()
    assert output.token_ids == ()
    assert output.finish_reason is FinishReason.LENGTH
    if wanted is not None:
        check(output.prompt_logprobs, PROMPT, wanted)
    toy.assert_idle()
    warm = toy.submit(ask(PROMPT, max_tokens=1))
    toy.run()
    assert warm.wait_result().cached_tokens == len(PROMPT) // 4 * 4


def test_a_whole_context_may_be_scored_but_not_continued():
    toy = cached_toy(context=32, blocks=20)
    prompt = (PROMPT * 2)[:32]
    handle = toy.submit(ask(prompt, prompt_logprobs=0, max_tokens=0))
    toy.run()
    check(handle.wait_result().prompt_logprobs, prompt, 0)


def test_a_fork_does_not_score_its_parents_tokens():
    toy = cached_toy()
    parent = toy.submit(ask(PROMPT, prompt_logprobs=1, max_tokens=8))
    toy.step(3)
    (child,) = toy.fork(parent)
    toy.run()
    assert child.wait_result().prompt_logprobs is None
    assert child.wait_result().cached_tokens > 0
    check(parent.wait_result().prompt_logprobs, PROMPT, 1)


def test_nan_prompt_logits_fail_only_their_request():
    toy = cached_toy()
    toy.executor.poison = lambda history: len(history) == 5 and history[0] == PROMPT[0]
    bad = toy.submit(ask(PROMPT, prompt_logprobs=1))
    good = toy.submit(ask(PROMPT[1:], prompt_logprobs=1))
    toy.run()
    assert bad.wait_result().finish_reason is FinishReason.ERROR
    check(good.wait_result().prompt_logprobs, PROMPT[1:], 1)
    toy.assert_idle()


def test_partial_prompt_logprobs_are_not_returned():
    toy = cached_toy(budget=8)
    handle = toy.submit(ask(PROMPT, prompt_logprobs=1))
    toy.step()
    handle.abort()
    assert handle.wait_result().prompt_logprobs is None


def scored_targets(toy):
    """The tokens that the steps from now on score, in order."""
    targets, check_writes = [], toy.executor.watch

    def watch(plan):
        check_writes(plan)
        targets.extend(plan.score_targets.tolist())

    toy.executor.watch = watch
    return targets


def choices_of(prompt, n, **params):
    return [ask(prompt, temperature=1.0, seed=seed, **params) for seed in range(n)]


@pytest.mark.parametrize(
    "settings", [{}, {"budget": 7}, {"rows": 1}, {"allocator": NaiveAllocator}]
)
def test_choices_score_their_prompt_once(settings):
    toy = cached_toy(**settings)
    targets = scored_targets(toy)
    handles = toy.submit_choices(*choices_of(PROMPT, 4, prompt_logprobs=2, max_tokens=3))
    toy.run()
    outputs = [handle.wait_result() for handle in handles]
    assert targets == PROMPT[1:]
    check(outputs[0].prompt_logprobs, PROMPT, 2)
    assert all(one.prompt_logprobs is outputs[0].prompt_logprobs for one in outputs)
    assert [one.token_ids for one in outputs] == [oracle(handle.request) for handle in handles]
    toy.assert_idle()


def test_choices_with_a_cached_prompt_wait_for_its_scores():
    toy = cached_toy(budget=8)
    toy.submit(ask(PROMPT, max_tokens=1))
    toy.run()
    targets = scored_targets(toy)
    first, second = toy.submit_choices(*choices_of(PROMPT, 2, prompt_logprobs=0, max_tokens=3))
    toy.step(2)
    assert second.drain() is None
    toy.run()
    assert targets == PROMPT[1:]
    assert second.drain().prompt_logprobs is first.drain().prompt_logprobs


def test_requests_that_differ_share_no_scores():
    toy = cached_toy()
    requests = [
        ask(PROMPT, prompt_logprobs=1),
        ask(PROMPT, prompt_logprobs=2),
        ask(PROMPT[:-1], prompt_logprobs=2),
        ask(PROMPT[:-1]),
    ]
    handles = toy.submit_choices(*requests)
    toy.run()
    for handle in handles[:3]:
        request = handle.request
        output = handle.wait_result()
        check(output.prompt_logprobs, request.prompt_ids, request.sampling.prompt_logprobs)
    assert handles[3].wait_result().prompt_logprobs is None


@given(
    budget=st.sampled_from([2, 7, 32]),
    blocks=st.integers(14, 60),
    n=st.integers(2, 5),
    disturbances=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=4
    ),
)
@settings(max_examples=40)
def test_a_scorer_that_loses_its_row_is_replaced(budget, blocks, n, disturbances):
    toy = cached_toy(budget=budget, blocks=blocks, rows=4)
    targets = scored_targets(toy)
    handles = toy.submit_choices(*choices_of(PROMPT, n, prompt_logprobs=1, max_tokens=2))
    aborted = set()
    for steps, victim, abort in disturbances:
        toy.step(steps)
        handle = handles[victim % n]
        if handle.finished:
            continue
        if abort:
            handle.abort()
            aborted.add(handle)
        elif toy.row(handle) != NO_ROW:
            toy.pipeline.scheduler.preempt(toy.row(handle))
    toy.run()
    complete = [handle.wait_result() for handle in handles if handle not in aborted]
    for output in complete:
        check(output.prompt_logprobs, PROMPT, 1)
        assert output.finish_reason is FinishReason.LENGTH
    if complete:
        assert targets == PROMPT[1:]
    toy.assert_idle()


def test_nan_prompt_logits_fail_every_choice_and_are_never_returned():
    toy = cached_toy()
    toy.executor.poison = lambda history: len(history) == len(PROMPT) - 1
    handles = toy.submit_choices(*choices_of(PROMPT, 3, prompt_logprobs=1))
    toy.run()
    for handle in handles:
        assert handle.wait_result().finish_reason is FinishReason.ERROR
        assert handle.wait_result().prompt_logprobs is None
    toy.assert_idle()


def test_decoding_is_steady_once_the_prompt_is_scored():
    toy = cached_toy()
    plans = []
    toy.executor.watch = plans.append
    toy.submit(ask(PROMPT, prompt_logprobs=1, max_tokens=9))
    toy.step(4)
    assert plans[-1] is plans[-2]
