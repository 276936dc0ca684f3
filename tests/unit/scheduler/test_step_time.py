"""The step-time model against machines whose step times are known."""

import numpy as np
import pytest

from engine.api.step_costs import StepCosts, StepLoad
from engine.scheduler.step_time import StepTimeModel, step_load
from engine.scheduler.work_predictor import WorkPredictor

CPU = StepCosts(2e-3, 2e-4, 6e-4, 3e-8)
GPU = StepCosts(1.1e-3, 4e-6, 1e-6, 1e-10)


def traffic(seed, steps):
    """Loads of a busy engine: mostly decodes, sometimes a prefill chunk."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        rows = int(rng.integers(0, 65))
        prefill = int(rng.integers(2, 512)) if rows == 0 or rng.random() < 0.3 else 0
        context = rng.integers(50, 1500)
        yield StepLoad(prefill, rows, int(rows * context + prefill * (prefill + 1) // 2))


@pytest.mark.parametrize("machine", [CPU, GPU], ids=["cpu", "gpu"])
def test_the_model_fits_a_machine(machine):
    model = StepTimeModel()
    for load in traffic(1, 200):
        model.observe(load, machine.seconds(load))
    for load in traffic(2, 100):
        assert model.predict(load) == pytest.approx(machine.seconds(load), rel=0.02)


def test_the_fit_is_robust_to_noise_and_outliers():
    """Another process makes every twentieth step ten times slower."""
    rng = np.random.default_rng(3)
    model = StepTimeModel()
    for load in traffic(4, 800):
        factor = 10.0 if rng.random() < 0.05 else float(rng.lognormal(0, 0.05))
        model.observe(load, CPU.seconds(load) * factor)
    errors = [model.predict(load) / CPU.seconds(load) - 1 for load in traffic(5, 200)]
    assert np.median(np.abs(errors)) < 0.12


def test_the_fit_follows_a_permanent_slowdown():
    model = StepTimeModel()
    for load in traffic(6, 400):
        model.observe(load, CPU.seconds(load))
    for load in traffic(7, 600):
        model.observe(load, 3 * CPU.seconds(load))
    for load in traffic(8, 50):
        assert model.predict(load) == pytest.approx(3 * CPU.seconds(load), rel=0.15)


def test_decode_only_steps_keep_the_fitted_prefill_cost():
    model = StepTimeModel()
    for load in traffic(9, 300):
        model.observe(load, CPU.seconds(load))
    for step in range(5000):
        decodes = StepLoad(0, 8, 8 * (100 + step % 1000))
        model.observe(decodes, CPU.seconds(decodes))
    chunk = StepLoad(256, 0, 256 * 257 // 2)
    assert model.predict(chunk) == pytest.approx(CPU.seconds(chunk), rel=0.1)


def test_costs_are_never_negative():
    model = StepTimeModel()
    rng = np.random.default_rng(10)
    for load in traffic(11, 300):  # times that have nothing to do with the load
        model.observe(load, float(rng.uniform(0.001, 0.1)))
        costs = model.costs
        assert min(costs.constant, costs.prefill_token, costs.decode_row, costs.kv_token) >= 0


def test_nothing_is_predicted_before_the_first_observation():
    model = StepTimeModel()
    assert model.predict(StepLoad(0, 1, 1)) is None
    assert model.costs is None
    assert WorkPredictor(model, chunk=8).prefill_seconds(10, cached=0) is None
    model.observe(StepLoad(0, 1, 1), 0.0)  # a clock that did not move says nothing
    assert model.costs is None


def test_one_observation_is_enough_to_predict():
    model = StepTimeModel()
    load = StepLoad(64, 0, 64 * 65 // 2)
    model.observe(load, 0.04)
    assert model.predict(load) == pytest.approx(0.04, rel=0.05)


def test_the_load_of_a_mixed_step():
    """Decodes read their whole KV; a chunk's tokens attend to what is before each of them."""
    num_scheduled_tokens = np.array([1, 1, 3, 1, 4], np.int32)
    end = np.array([10, 1, 3, 7, 104], np.int32)
    load = step_load(num_scheduled_tokens, end, 10)
    naive = sum(
        e - g + 1 + i for g, e in zip(num_scheduled_tokens, end, strict=True) for i in range(g)
    )
    assert load == StepLoad(7, 3, naive)


def test_draft_tokens_load_a_step_like_decodes():
    """Two rows of a decode, one of them with three draft tokens, beside a prefill of five."""
    num_scheduled_tokens, end = np.array([1, 4, 5], np.int32), np.array([9, 20, 5], np.int32)
    load = step_load(num_scheduled_tokens, end, 10, np.array([0, 3, 0], np.int32))
    assert load == StepLoad(5, 5, 9 + (17 + 18 + 19 + 20) + (1 + 2 + 3 + 4 + 5))


def test_the_load_of_a_huge_chunk_does_not_overflow():
    load = step_load(np.array([65536], np.int32), np.array([2**24], np.int32), 65536)
    assert load.kv_tokens == 65536 * 2**24 - 65536 * 65535 // 2
