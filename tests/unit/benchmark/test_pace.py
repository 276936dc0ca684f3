"""The prediction of the self-benchmark's duration."""

import pytest

from engine.benchmark.pace import BUDGET_S, Pace
from engine.benchmark.self_benchmark import BATCHES


def pace(prompt_s, step_s):
    return Pace(64, 64, 128, prompt_s, step_s)


def test_a_batch_is_its_prompts_twice_and_its_steps():
    """One stream: a warm-up of one prompt and two steps, then a run without and one with its tokens."""
    assert pace(1.0, 0.1).seconds((1,), 1, single=False) == pytest.approx(1 + 0.2 + 2 + 6.4)
    assert pace(1.0, 0.1).seconds((1,), 3, single=False) == pytest.approx(1.2 + 3 * 8.4)
    assert pace(1.0, 0.1).seconds((), 2) == pytest.approx(2 * 12.8)


def test_more_rows_take_the_time_of_their_arithmetic():
    one, many = (pace(0.64, 0.1).seconds((n,), 1, single=False) for n in (1, 65))
    assert many - 65 * 3 * 0.64 == pytest.approx(66 * (0.1 + 64 * 0.01))
    assert one - 3 * 0.64 == pytest.approx(66 * 0.1)


@pytest.mark.parametrize(
    ("prompt_s", "step_s", "repeats"),
    [(0.005, 0.003, 3), (0.06, 0.03, 1), (0.5, 0.05, 1), (10.0, 1.0, 1)],
)
def test_as_many_runs_as_a_minute_allows(prompt_s, step_s, repeats):
    model = pace(prompt_s, step_s)
    assert model.repeats(BATCHES) == repeats
    if repeats < 3:
        assert model.seconds(BATCHES, repeats + 1) > BUDGET_S
