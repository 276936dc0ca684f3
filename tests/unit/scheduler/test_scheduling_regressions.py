"""Scheduling regressions under every policy; numbers are those of `docs/reliability.md`.

19 (order, bounded starvation, hopeless deadlines) is `test_policies`;
15 by the clock is `test_batch_former`; `tests/unit/memory` has the memory side of 16-18 and 22.
"""

from collections import defaultdict
from itertools import pairwise

import pytest

from engine.api.events import RequestPreempted, RequestScheduled
from engine.api.request import FinishReason, Request, SamplingParams
from engine.api.scheduling import BATCH_FORMERS, POLICIES, Scheduling
from tests.fakes.timed_pipeline import TimedPipeline, ask, prompt
from tests.fakes.toy_executor import oracle

pytestmark = pytest.mark.parametrize("policy", POLICIES)


def finish(toy, requests):
    handles = [toy.submit(request) for request in requests]
    toy.run()
    toy.assert_idle()
    return [handle.drain() for handle in handles]


def test_15_a_long_prefill_beside_decodes_leaves_them_a_token_every_step(policy):
    """nano-vllm #73, PR #276."""
    toy = TimedPipeline(policy, budget=8)
    decode = toy.submit(ask(4, max_tokens=60, deadline_ms=50_000))
    toy.step()
    prefill = toy.submit(ask(150, 5, max_tokens=2, priority=-1, deadline_ms=5_000))
    while not prefill.finished:
        before = toy.table.num_tokens[toy.row(decode)]
        toy.step()
        assert toy.table.num_tokens[toy.row(decode)] == before + 1


def test_16_one_request_that_exhausts_the_pool_finishes_with_an_error(policy):
    """transformers #43150: the request finishes with an error; the scheduler does not spin."""
    toy = TimedPipeline(policy, blocks=6, block_size=4)
    small = ask(4, 9, max_tokens=6, priority=2)
    greedy, other = finish(toy, [ask(10, max_tokens=100, priority=-1), small])
    assert greedy.finish_reason is FinishReason.ERROR
    assert "KV pool holds 24" in greedy.error
    assert other.token_ids == oracle(small)


def test_17_preemption_does_not_thrash(policy):
    """vLLM #21809: a preempted request is readmitted only when all of its tokens fit, and beside them a
    block for each other running row, so that their next tokens do not preempt it at once.
    """
    toy = TimedPipeline(policy, blocks=16, block_size=4)
    lengths: dict[str, list[int]] = defaultdict(list)
    toy.events.subscribe(
        RequestPreempted, lambda event: lengths[event.request_id].append(event.num_tokens)
    )
    free_after_resuming = []

    def resume(event):
        if event.resumed:
            others = len(toy.pipeline.scheduler.running) - 1
            free_after_resuming.append(toy.blocks.num_free - others)

    toy.events.subscribe(RequestScheduled, resume)
    requests = [
        ask(6, start, max_tokens=30, priority=start % 2, deadline_ms=2_000 + 10 * start)
        for start in range(8)
    ]
    for request, batch in zip(requests, finish(toy, requests), strict=True):
        assert batch.token_ids == oracle(request)
    preemptions = toy.counters.totals().preemptions
    assert 0 < preemptions <= len(requests)
    assert len(free_after_resuming) == preemptions
    assert min(free_after_resuming) >= 0
    for preempted_at in lengths.values():
        assert all(later > earlier for earlier, later in pairwise(preempted_at))


@pytest.mark.parametrize("former", BATCH_FORMERS)
def test_18_nothing_is_admitted_in_a_step_that_preempted(policy, former):
    toy = TimedPipeline(policy, blocks=8, block_size=4)
    toy.pipeline.scheduler.switch(Scheduling(policy, former, 20.0))
    happened = []
    toy.events.subscribe(RequestPreempted, lambda _: happened.append("preempted"))
    toy.events.subscribe(RequestScheduled, lambda _: happened.append("scheduled"))
    for start in range(4):
        toy.submit(ask(7, start, max_tokens=14, priority=-start, deadline_ms=900))
    preempted = 0
    while toy.pipeline.has_work:
        happened.clear()
        toy.step()
        preempted += happened.count("preempted")
        assert set(happened) != {"preempted", "scheduled"}
    assert preempted


def test_18_what_a_preemption_frees_is_not_given_to_a_short_request_at_once(policy):
    toy = TimedPipeline(policy, blocks=16, block_size=4)
    happened = []
    toy.events.subscribe(RequestPreempted, lambda _: happened.append("preempted"))
    toy.events.subscribe(RequestScheduled, lambda _: happened.append("scheduled"))
    for start in range(2):
        toy.submit(ask(26, start, max_tokens=14, deadline_ms=900))
    while len(toy.pipeline.scheduler.running) < 2:
        toy.step()
    toy.submit(ask(2, 9, max_tokens=2, deadline_ms=900))
    while "preempted" not in happened:
        happened.clear()
        toy.step()
    assert "scheduled" not in happened
    toy.run()
    toy.assert_idle()


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_20_a_budget_equal_to_the_remaining_prompt_and_off_by_one(policy, extra):
    """sglang #1594."""
    toy = TimedPipeline(policy, budget=16 + extra)
    request = ask(32, max_tokens=4, deadline_ms=400)
    (batch,) = finish(toy, [request])
    assert batch.token_ids == oracle(request)


@pytest.mark.parametrize("budget", [1, 7, 32, 1000])
def test_21_chunked_prefill_changes_no_answer(policy, budget):
    toy = TimedPipeline(policy, budget=budget)
    requests = [
        ask(length, length, priority=-length, deadline_ms=100 * length)
        for length in (1, 3, 4, 5, 8, 31, 33, 60)
    ]
    for request, batch in zip(requests, finish(toy, requests), strict=True):
        assert batch.token_ids == oracle(request)


def test_22_preempted_and_computed_again_gives_the_same_samples(policy):
    params = {"temperature": 1.0, "max_tokens": 20, "ignore_eos": True, "logprobs": 2}
    requests = [
        Request(prompt(6, start), SamplingParams(seed=start, **params), priority=-start)
        for start in range(5)
    ]
    roomy, tight = (TimedPipeline(policy, blocks=blocks) for blocks in (64, 10))
    for one, other in zip(finish(roomy, requests), finish(tight, requests), strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == other.logprobs
        assert one.top_logprobs == other.top_logprobs
    assert tight.counters.totals().preemptions > 0
