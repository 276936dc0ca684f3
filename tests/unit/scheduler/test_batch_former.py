"""Token budgets of steps, and their effect on inter-token latency."""

import numpy as np
import pytest

from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepLoad
from engine.scheduler.batch_former import MIN_CHUNK, make_batch_former
from engine.scheduler.work_predictor import WorkPredictor
from tests.fakes.timed_pipeline import TimedPipeline, ask, step_seconds, teach
from tests.fakes.toy_executor import oracle

TARGET_MS = 50.0
NOBODY = StepLoad(0, 0, 0)


@pytest.fixture
def work():
    predictor = WorkPredictor(chunk=512)
    teach(predictor)
    return predictor


def timed(work, target_ms=TARGET_MS):
    scheduling = Scheduling(batch_former="timed", step_target_ms=target_ms)
    return make_batch_former(scheduling, work, token_budget=512)


def test_a_fixed_step_has_the_token_budget(work):
    former = make_batch_former(Scheduling(), work, token_budget=512)
    assert former.budget(NOBODY, 0) == former.budget(StepLoad(0, 64, 10**6), 900) == 512


@pytest.mark.parametrize("rows", [1, 8, 40])
def test_a_timed_step_meets_its_target(work, rows):
    decodes = StepLoad(0, rows, 10 * rows)
    chunk = timed(work).budget(decodes, 0) - rows
    assert step_seconds(chunk, rows) == pytest.approx(TARGET_MS / 1000, rel=0.1)


def test_without_decodes_a_prefill_gets_the_whole_budget(work):
    assert timed(work).budget(NOBODY, 1000) == 512


def test_before_step_times_are_measured_only_the_token_budget_applies():
    assert timed(WorkPredictor(chunk=512)).budget(StepLoad(0, 4, 100), 0) == 512


def test_a_machine_too_slow_for_its_target_still_makes_progress(work):
    assert timed(work, 1.0).budget(StepLoad(0, 20, 200), 0) == 20 + MIN_CHUNK


@pytest.mark.parametrize("rows", [500, 512, 600])
def test_no_step_exceeds_the_token_budget(work, rows):
    """The executor's buffers hold no more."""
    assert timed(work).budget(StepLoad(0, rows, 10 * rows), 0) == 512


def stalls(former):
    """Seconds between the tokens of two streams while a long prompt is computed beside them."""
    toy = TimedPipeline("fcfs", blocks=256, context=1024, budget=512)
    toy.pipeline.scheduler.switch(Scheduling(batch_former=former, step_target_ms=TARGET_MS))
    streams = [toy.submit(ask(4, start, max_tokens=200)) for start in range(2)]
    toy.step(2)
    request = ask(700, max_tokens=2)
    late = toy.submit(request)
    times = []
    while not late.finished:
        began = toy.clock.now
        before = [int(toy.table.num_tokens[toy.row(one)]) for one in streams]
        toy.step()
        times.append(toy.clock.now - began)
        after = [int(toy.table.num_tokens[toy.row(one)]) for one in streams]
        assert after == [one + 1 for one in before]
    assert late.drain().token_ids == oracle(request, max_model_len=1024)
    return np.array(times)


def test_15_a_long_prefill_beside_decodes_bounds_their_inter_token_latency():
    """nano-vllm #73, PR #276: by the budget, or by the clock."""
    assert stalls("fixed").max() == pytest.approx(step_seconds(510, 2), rel=0.01)
    assert stalls("timed").max() < 1.2 * TARGET_MS / 1000


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_20_a_timed_budget_equal_to_the_remaining_prompt_and_off_by_one(extra, work):
    """sglang #1594, for the budget that the clock gives."""
    toy = TimedPipeline("fcfs", blocks=64)
    toy.pipeline.scheduler.switch(Scheduling(batch_former="timed", step_target_ms=TARGET_MS))
    toy.submit(ask(4, 7, max_tokens=30))
    toy.step(2)
    chunk = timed(work).budget(StepLoad(0, 1, 6), 0) - 1
    request = ask(min(chunk, 31) + extra, max_tokens=3)
    handle = toy.submit(request)
    toy.run()
    assert handle.drain().token_ids == oracle(request)
