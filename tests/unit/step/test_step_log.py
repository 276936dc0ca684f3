"""The log of steps and the description of a plan."""

from engine._core import BlockAllocator
from engine.api.step_view import STEP_ENTRIES, RowPhase
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def toy_pipeline(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": 4} | settings)


def test_each_step_is_logged_with_its_work():
    toy = toy_pipeline(budget=8)
    toy.submit(ask(prompt(12), max_tokens=3))
    toy.run()
    steps = toy.pipeline.steps.since(0)
    assert [step.number for step in steps] == [1, 2, 3, 4]
    assert [step.prefill_tokens for step in steps] == [8, 4, 0, 0]
    assert [step.decode_tokens for step in steps] == [0, 0, 1, 1]
    assert all(step.rows == 1 and step.started == 100.0 for step in steps)
    assert [step.number for step in toy.pipeline.steps.since(3)] == [4]
    assert toy.counters.totals().steps == 4


def test_the_log_is_bounded():
    toy = toy_pipeline()
    toy.submit(ask(prompt(4), max_tokens=200))
    for _ in range(4):
        toy.submit(ask(prompt(4), max_tokens=200))
        toy.run()
    log = toy.pipeline.steps
    assert len(log.since(0)) == min(STEP_ENTRIES, toy.counters.totals().steps)


def test_no_plan_is_described_unless_one_is_asked_for():
    toy = toy_pipeline()
    toy.submit(ask(prompt(4), max_tokens=9))
    toy.step(2)
    assert toy.pipeline.steps.plan() is None
    toy.step()
    assert toy.pipeline.steps.plan().number == 3


def test_a_plan_names_each_request_with_its_phase_and_tokens():
    toy = toy_pipeline(budget=8)
    first = toy.submit(ask(prompt(4), max_tokens=20))
    toy.step()
    second = toy.submit(ask(prompt(20, 40), max_tokens=2))
    log = toy.pipeline.steps
    log.plan()
    toy.step()
    plan = log.plan()
    assert plan.limit == 8
    assert plan.budget is not None
    decode, prefill = plan.rows
    assert (decode.request_id, decode.phase, decode.tokens) == (
        first.request_id, RowPhase.DECODE, 1,
    )  # fmt: skip
    assert (prefill.request_id, prefill.phase) == (second.request_id, RowPhase.PREFILL)
    assert (prefill.tokens, prefill.computed_tokens) == (7, 0)


def test_the_plan_of_a_steady_decode_has_no_budget():
    toy = toy_pipeline()
    handle = toy.submit(ask(prompt(4), max_tokens=20))
    toy.step(3)
    toy.pipeline.steps.plan()
    toy.step()
    plan = toy.pipeline.steps.plan()
    assert plan.budget is None
    assert [(row.request_id, row.tokens) for row in plan.rows] == [(handle.request_id, 1)]


def test_draft_tokens_are_counted_apart():
    toy = toy_pipeline(speculation=True)
    repeated = [1, 2, 3, 4, 5, 6] * 5
    toy.submit(ask(repeated, max_tokens=40))
    toy.run()
    steps = toy.pipeline.steps.since(0)
    assert sum(step.draft_tokens for step in steps) == toy.counters.totals().draft_tokens
