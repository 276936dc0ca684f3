"""Runs of agents that the pool cannot hold to their end: who waits, for how long, and what that saves."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from benchmarks.run_shapes import half_pool, make_runs
from benchmarks.simulate import BLOCK_SIZE, STORED
from benchmarks.simulated_runs import SimulatedRuns
from engine._core import BlockAllocator
from engine.api.config import DEFAULT_MAX_HOLD_S
from engine.api.step_costs import StepCosts
from engine.scheduler.run_gate import PROMOTION_INTERVAL
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline

RATIO = 1.15
"""Tokens computed over those that are new."""


def toy(**options):
    pipeline = ToyPipeline(
        **{"blocks": 24, "block_size": 4, "allocator": BlockAllocator, "max_hold_s": 60.0} | options
    )
    sessions = pipeline.blocks.sessions
    sessions.growth, sessions.turns = 8.0, 3.0
    return pipeline


def submit(pipeline, name, tokens, *, may_be_held=True, max_tokens=1):
    request = ask(tokens, max_tokens=max_tokens, temperature=0.0)
    return pipeline.submit(replace(request, session=name, may_be_held=may_be_held))


def tokens_of(pipeline, handle):
    return pipeline.sequences[handle.request_id].tokens.tolist()


def prompt(first, length=40):
    return [(first + index) % 90 for index in range(length)]


def held(pipeline):
    return pipeline.pipeline.scheduler.run_gate.num_held


def test_a_run_that_does_not_fit_beside_an_older_one_waits():
    pipeline = toy()
    old = submit(pipeline, "old", prompt(0), max_tokens=4)
    young = submit(pipeline, "young", prompt(45))
    pipeline.step()
    assert held(pipeline) == 1
    assert (pipeline.row(old) >= 0, pipeline.row(young) >= 0) == (True, False)
    pipeline.run()
    assert young.finished
    assert old.finished


@pytest.mark.parametrize("change", [{"max_hold_s": 0.0}, {"blocks": 200}])
def test_nothing_is_held_if_it_is_switched_off_or_all_fits(change):
    pipeline = toy(**{"blocks": 24} | change)
    handles = [submit(pipeline, name, prompt(start)) for name, start in (("a", 0), ("b", 45))]
    pipeline.step()
    assert held(pipeline) == 0
    pipeline.run()
    assert all(one.finished for one in handles)


def test_a_person_never_waits_for_runs():
    pipeline = toy()
    submit(pipeline, "run", prompt(0), max_tokens=9)
    submit(pipeline, "run 2", prompt(45))
    chat = submit(pipeline, "chat", [1, 2, 3], may_be_held=False, max_tokens=9)
    pipeline.step(3)
    assert held(pipeline) == 1
    assert pipeline.row(chat) >= 0
    pipeline.run()


def test_a_run_keeps_its_age_over_pauses():
    pipeline = toy()
    first = submit(pipeline, "a", prompt(0))
    pipeline.run()
    other = submit(pipeline, "b", prompt(45))
    again = submit(pipeline, "a", [*tokens_of(pipeline, first), 5, 6], max_tokens=9)
    pipeline.step(2)
    assert (pipeline.row(again) >= 0, pipeline.row(other) >= 0) == (True, False)
    assert pipeline.sequences[again.request_id].mailbox.cached_tokens >= 40
    pipeline.run()


def test_an_idle_engine_holds_no_longer_than_computing_again_would_take():
    pipeline = toy()
    submit(pipeline, "a", prompt(0))
    pipeline.run()
    pipeline.pipeline.scheduler.work.prefill_seconds = lambda tokens, cached: tokens / 10
    begun = pipeline.clock.now
    late = submit(pipeline, "b", prompt(45, 60))
    pipeline.pipeline.step()
    until = pipeline.pipeline.idle_until
    assert held(pipeline) == 1
    # 15 blocks are needed, and 14 of 24 are free: one is computed again, 4 tokens.
    assert until == pytest.approx(begun + 0.4)
    assert pipeline.pipeline.has_work
    pipeline.clock.now = until
    pipeline.run()
    assert late.finished


def test_a_new_request_ends_the_idle_time():
    pipeline = toy()
    submit(pipeline, "a", prompt(0))
    pipeline.run()
    pipeline.pipeline.scheduler.work.prefill_seconds = lambda tokens, cached: 1e3
    late = submit(pipeline, "b", prompt(45, 60))
    pipeline.pipeline.step()
    assert pipeline.pipeline.idle_until is not None
    late.abort()
    assert pipeline.pipeline.idle_until is None
    assert not pipeline.pipeline.has_work


def test_an_idle_engine_holds_nothing_for_longer_than_a_busy_one():
    pipeline = toy(max_hold_s=5.0)
    submit(pipeline, "a", prompt(0))
    pipeline.run()
    pipeline.pipeline.scheduler.work.prefill_seconds = lambda tokens, cached: 1e3
    begun = pipeline.clock.now
    late = submit(pipeline, "b", prompt(45, 60))
    pipeline.pipeline.step()
    until = pipeline.pipeline.idle_until
    assert begun < until <= begun + 5.0
    pipeline.clock.now = until
    pipeline.run()
    assert late.finished


def test_a_client_that_gives_up_and_asks_again_has_waited_all_the_while():
    pipeline = toy(max_hold_s=5.0)
    submit(pipeline, "old", prompt(0), max_tokens=40)
    young = submit(pipeline, "young", prompt(45))
    pipeline.step()
    pipeline.clock.now += 3.0
    young.abort()
    pipeline.step()
    young = submit(pipeline, "young", prompt(45))
    pipeline.step()
    assert held(pipeline) == 1
    pipeline.clock.now += 3.0
    pipeline.step()
    assert pipeline.blocks.sessions.find("young").since < pipeline.blocks.sessions.find("old").since
    pipeline.run()
    assert young.finished


def test_a_run_that_was_held_for_long_becomes_one_of_the_oldest():
    pipeline = toy(max_hold_s=5.0)
    submit(pipeline, "old", prompt(0), max_tokens=30)
    young = submit(pipeline, "young", prompt(45))
    pipeline.step()
    assert held(pipeline) == 1
    pipeline.clock.now += 6.0
    pipeline.step()
    assert pipeline.blocks.sessions.find("young").since < pipeline.blocks.sessions.find("old").since
    pipeline.run()
    assert young.finished


def test_only_one_run_becomes_old_at_a_time():
    pipeline = toy(max_hold_s=5.0)
    pipeline.pipeline.scheduler.work.prefill_seconds = lambda tokens, cached: 1.0
    submit(pipeline, "old", prompt(0), max_tokens=50)
    for name, first in (("b", 30), ("c", 60)):
        submit(pipeline, name, prompt(first))
    pipeline.step()
    pipeline.clock.now += 6.0
    pipeline.step()
    promoted = [one.name for one in pipeline.blocks.sessions if one.since < 0]
    assert promoted == ["b"]
    pipeline.clock.now += PROMOTION_INTERVAL
    pipeline.run()


@given(
    starts=st.lists(st.integers(0, 80), min_size=2, max_size=6),
    lengths=st.lists(st.integers(1, 60), min_size=6, max_size=6),
    turns=st.lists(st.integers(1, 4), min_size=6, max_size=6),
    blocks=st.integers(24, 60),
    hold=st.sampled_from([0.0, 1.0, 1e6]),
    pause=st.sampled_from([0.0, 0.3, 100.0]),
)
@settings(max_examples=60)
def test_every_run_ends_with_the_answers_that_it_has_alone(
    starts, lengths, turns, blocks, hold, pause
):
    pipeline = toy(blocks=blocks, max_hold_s=hold)
    open_turns = {}
    for number, start in enumerate(starts):
        handle = submit(pipeline, f"run {number}", prompt(start, lengths[number]), max_tokens=3)
        open_turns[number] = [handle, turns[number]]
    for _ in range(4000):
        if not open_turns:
            break
        pipeline.clock.now += 0.05
        if pipeline.pipeline.has_work:
            pipeline.step()
        for number, (handle, left) in list(open_turns.items()):
            if not handle.finished:
                continue
            tokens = tokens_of(pipeline, handle)
            answer = tuple(tokens[len(handle.request.prompt_ids) :])
            assert answer == oracle(handle.request, max_model_len=256)
            if left == 1:
                del open_turns[number]
            else:
                pipeline.clock.now += pause
                again = submit(pipeline, f"run {number}", [*tokens, 7], max_tokens=3)
                open_turns[number] = [again, left - 1]
    assert not open_turns  # none starves
    pipeline.assert_idle()


def play(count, *, factor=1.0, **options):
    runs = make_runs(count, seed=0)
    costs = StepCosts(
        STORED.constant * factor,
        STORED.prefill_token * factor,
        STORED.decode_row * factor,
        STORED.kv_token * factor,
    )
    return SimulatedRuns(
        runs, num_blocks=half_pool(runs, BLOCK_SIZE), costs=costs, **options
    ).play()


@pytest.mark.parametrize("factor", [0.3, 1.0])
@pytest.mark.parametrize("count", [1, 16])
def test_runs_on_half_of_their_pool_compute_each_token_about_once(count, factor):
    outcome = play(count, factor=factor, max_hold_s=DEFAULT_MAX_HOLD_S)
    assert 1.0 <= outcome.ratio <= RATIO


def test_without_sessions_the_runs_evict_each_other():
    alone, held = play(16, sessions=False), play(16, max_hold_s=DEFAULT_MAX_HOLD_S)
    assert alone.ratio > 1.5
    assert held.seconds < 0.8 * alone.seconds


def test_a_simulation_is_exact():
    assert play(1, max_hold_s=DEFAULT_MAX_HOLD_S) == play(1, max_hold_s=DEFAULT_MAX_HOLD_S)
