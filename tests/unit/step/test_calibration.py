"""Calibration: what the step-time model learns from it, and that it leaves no state behind."""

import pytest

from engine._core import BlockAllocator
from engine.api.step_costs import StepLoad
from engine.step.calibration import MAX_PROBE_S, PROBES, Calibration, Probe
from tests.fakes.timed_pipeline import TimedPipeline, ask, step_seconds
from tests.fakes.toy_engine import ask as toy_ask
from tests.fakes.toy_engine import toy_config, toy_engine
from tests.fakes.toy_executor import oracle
from tests.server.byte_engine import wait_until


def calibrate(toy, probes=PROBES):
    calibration = Calibration(probes)
    steps = 0
    while calibration.pending:
        toy.pipeline.calibrate(calibration)
        steps += 1
        toy.check()
    return steps


def timed(**options):
    return TimedPipeline("fcfs", fitted=False, budget=64, **options)


def test_an_idle_engine_learns_its_step_times():
    toy = timed()
    calibrate(toy)
    model = toy.pipeline.scheduler.work.model
    for prefill, rows in ((64, 0), (0, 1), (0, 4), (40, 2)):
        load = StepLoad(prefill, rows, prefill * (prefill + 1) // 2 + 32 * rows)
        assert model.predict(load) == pytest.approx(step_seconds(prefill, rows), rel=0.2)


def test_calibration_leaves_no_state_behind():
    toy = timed(allocator=BlockAllocator)
    calibrate(toy)
    toy.assert_idle()
    assert toy.blocks.counts().cached == 0
    assert toy.counters.totals().steps == 0
    request = ask(20, max_tokens=9)
    handle = toy.submit(request)
    toy.run()
    assert handle.drain().token_ids == oracle(request)


def test_probes_predicted_to_take_too_long_are_not_run():
    toy = timed()
    slow = toy.executor.watch
    began = []

    def slower(plan):
        began.append(len(plan.token_ids))
        slow(plan)
        toy.clock.now += 3 * MAX_PROBE_S

    toy.executor.watch = slower
    calibrate(toy)
    assert began == [1, 1]  # the warm-up, and the first one observed


def test_a_probe_evicts_no_cached_blocks():
    toy = timed(blocks=20, allocator=BlockAllocator)
    toy.submit(ask(40, max_tokens=20))  # leaves 14 of the 20 blocks cached
    toy.run()
    cached = toy.blocks.counts().cached
    assert cached > 0
    calibrate(toy, (Probe(4, 1, 31),))
    assert toy.blocks.counts().cached == cached


@pytest.mark.parametrize("options", [{"rows": 2}, {"context": 48}, {"blocks": 4}])
def test_a_probe_that_does_not_fit_is_not_run(options):
    toy = timed(**options)
    calibrate(toy)
    toy.assert_idle()


def test_a_failing_probe_only_ends_the_calibration():
    toy = timed()
    toy.executor.fail_with = [RuntimeError("no such kernel")]
    assert calibrate(toy) == 1
    request = ask(20)
    handle = toy.submit(request)
    toy.run()
    assert handle.drain().token_ids == oracle(request)


def test_the_probes_include_prefill_and_decode_steps():
    """Both kinds are needed to estimate their costs separately."""
    kinds = {(probe.rows, probe.tokens) for probe in PROBES if probe.observed}
    assert len(kinds) >= 4
    assert {tokens == 1 for _, tokens in kinds} == {True, False}
    assert not PROBES[0].observed


def test_the_engine_calibrates_while_it_is_idle():
    engine, executor = toy_engine(toy_config(blocks=64), probes=PROBES)
    engine.start()
    wait_until(lambda: engine.snapshot().step_costs is not None)
    request = toy_ask(max_tokens=5)
    assert engine.submit(request).wait_result(30).token_ids == oracle(request)
    assert engine.snapshot().totals.steps == 5 < len(executor.steps)
    engine.shutdown()
