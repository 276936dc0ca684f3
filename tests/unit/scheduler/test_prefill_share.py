"""Short prompts beside long prefills."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.scheduling import BATCH_FORMERS, POLICIES, Scheduling
from engine.api.step_costs import StepCosts, StepLoad
from engine.scheduler.batch_former import MAX_STEP_S, max_chunk
from engine.scheduler.prefill_share import SHORT_SHARE, share_prefill
from tests.fakes.timed_pipeline import TimedPipeline, ask
from tests.fakes.toy_executor import oracle

LONG = 8000
CONTEXT = 8192


def beside_a_long_prefill(policy, former, *, late):
    """TTFT of requests that arrive while the long one is computed, and its own; virtual seconds."""
    toy = TimedPipeline(policy, blocks=5000, context=CONTEXT, budget=512)
    toy.pipeline.scheduler.switch(Scheduling(policy=policy, batch_former=former))
    long = toy.submit(ask(LONG, max_tokens=2))
    toy.step(2)
    handles = [toy.submit(request) for request in late]
    toy.run()
    answers = [handle.drain() for handle in handles]
    for answer, request in zip(answers, late, strict=True):
        assert answer.token_ids == oracle(request, max_model_len=CONTEXT)
    return [answer.timings.ttft for answer in answers], long.drain().timings.ttft


@pytest.mark.parametrize("former", BATCH_FORMERS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_short_prompt_does_not_wait_for_a_long_prefill(policy, former):
    _, alone = beside_a_long_prefill(policy, former, late=[])
    (short,), long = beside_a_long_prefill(policy, former, late=[ask(5, 3)])
    assert alone > 8
    assert short <= 2 * MAX_STEP_S + 0.01
    assert long <= 1.1 * alone


def test_many_short_prompts_slow_a_long_prefill_by_their_share_only():
    _, alone = beside_a_long_prefill("fcfs", "fixed", late=[])
    late = [ask(5, start, max_tokens=1) for start in range(20)]
    shorts, long = beside_a_long_prefill("fcfs", "fixed", late=late)
    assert max(shorts) < alone / 2
    assert long <= 1.1 * alone


def test_a_short_prompt_does_not_wait_for_a_long_one_that_waits_before_it():
    (longer, short), _ = beside_a_long_prefill("fcfs", "fixed", late=[ask(LONG, 5), ask(5, 3)])
    assert short <= 3 * MAX_STEP_S
    assert longer > 8


def test_without_the_long_prefill_the_policy_orders_admissions_again():
    toy = TimedPipeline("fcfs", blocks=5000, context=CONTEXT, budget=512)
    long = toy.submit(ask(LONG))
    toy.step()
    toy.submit(ask(5, 3, max_tokens=60))
    toy.step()  # the short prompt is admitted beside the long one
    long.abort()
    names = toy.names(first=ask(100, 5), second=ask(4, 7))
    assert names == ["first", "second"]


@given(
    pending=st.lists(st.integers(1, 3000), min_size=1, max_size=8),
    budget=st.integers(1, 600),
    share=st.floats(0, 1),
)
def test_shares_are_bounded_and_nothing_is_left_over(pending, budget, share):
    wanted = np.array(pending, np.int32)
    reserved = int(budget * share)
    scheduled = share_prefill(wanted, budget, reserved)
    assert (scheduled >= 0).all()
    assert (scheduled <= wanted).all()
    assert scheduled.sum() == min(budget, wanted.sum())
    assert scheduled[0] >= min(wanted[0], budget - reserved)


def test_the_reserved_tokens_go_to_the_shortest():
    pending = np.array([900, 700, 20, 3], np.int32)
    reserved = int(500 * SHORT_SHARE)
    assert share_prefill(pending, 500, reserved).tolist() == [450, 27, 20, 3]
    assert share_prefill(pending, 500, 0).tolist() == [500, 0, 0, 0]


def test_a_step_is_longer_where_most_of_its_time_would_be_fixed_costs():
    fast = StepCosts(constant=0.002, prefill_token=0.0005, decode_row=0.001, kv_token=0.0)
    slow = StepCosts(constant=0.15, prefill_token=0.01, decode_row=0.1, kv_token=0.0)
    nobody = StepLoad(0, 0, 0)
    assert max_chunk(fast, nobody, 0) == 396  # 0.2 s
    assert max_chunk(slow, nobody, 0) == 134  # 1.5 s, of which the constant is a tenth
