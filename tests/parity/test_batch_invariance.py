"""Batch invariance: a sequence's logprobs have the same bits in any batch and any chunking."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.parity.loading import load_stepper
from tests.parity.stepper import Run, Stepper

ROWS, NEW_TOKENS = 16, 6


@pytest.fixture(scope="module", params=["f16", "f32", "int8"])
def stepper(request: pytest.FixtureRequest, demo_model: Path) -> Iterator[Stepper]:
    stepper = load_stepper(demo_model, kv_dtype=request.param, rows=ROWS, max_tokens=128)
    yield stepper
    stepper.executor.close()


def outcome(run: Run) -> tuple[object, ...]:
    return run.tokens, run.logprobs, run.top, run.id_logprobs


@pytest.mark.parametrize("seed", range(2))
def test_alone_equals_among_sixteen(stepper: Stepper, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(17, 49000, rng.integers(1, 120)).tolist() for _ in range(ROWS)]
    # Greedy and seeded rows in one batch.
    samplings = [
        {"num_logprobs": 3, "temperature": 0.8 * (row % 2), "seed": row} for row in range(ROWS)
    ]

    def run(row: int, **fields: object) -> Run:
        return Run(
            prompts[row],
            NEW_TOKENS,
            sampling=samplings[row],
            logprob_ids=range(100, 100 + row),
            **fields,
        )

    together = [
        run(row, arrival=int(rng.integers(0, 10)), chunks=rng.integers(1, 40, 4).tolist())
        for row in range(ROWS)
    ]
    stepper.run(together)
    for row in range(seed, ROWS, 3):  # greedy and seeded rows, others for each seed
        alone = run(row)
        stepper.run([alone])
        assert outcome(alone) == outcome(together[row])


def test_every_batch_size(stepper: Stepper) -> None:
    """Batch sizes around every change of kernel block size or activation sharing."""
    prompt = np.random.default_rng(9).integers(17, 49000, 33).tolist()
    others = [np.random.default_rng(n).integers(17, 49000, 5).tolist() for n in range(ROWS)]
    results = []
    for count in range(1, ROWS + 1):
        runs = [Run(prompt, 4, sampling={"num_logprobs": 5})]
        runs += [Run(other, 4) for other in others[: count - 1]]
        stepper.run(runs)
        results.append(outcome(runs[0]))
    assert all(result == results[0] for result in results)


def test_any_number_of_threads(demo_model: Path) -> None:
    """Few rows, whose work has fixed shares, then many, one of them with a context in two splits."""
    rng = np.random.default_rng(4)
    prompts = [rng.integers(17, 49000, length).tolist() for length in (530, *range(3, 12))]
    results = {}
    for threads in (1, 2, 3, 4, 7):
        stepper = load_stepper(
            demo_model,
            kv_dtype="int8",
            rows=len(prompts),
            max_model_len=600,
            threads=threads,
        )
        assert stepper.executor.info.threads == threads
        runs = [Run(prompt, 4, sampling={"num_logprobs": 3}) for prompt in prompts]
        for run in runs[5:]:
            run.arrival = 4
        stepper.run(runs)
        stepper.executor.close()
        results[threads] = [outcome(run) for run in runs]
    assert all(result == results[1] for result in results.values())


def test_yielding_a_core_changes_no_bits(stepper: Stepper) -> None:
    """Steps with decodes and prefills run while another thread makes the engine yield a core."""
    rng = np.random.default_rng(3)
    prompts = [rng.integers(17, 49000, rng.integers(40, 120)).tolist() for _ in range(ROWS)]

    def go() -> list[tuple[list[int], list[float], list[list[tuple[int, float]]]]]:
        runs = [Run(prompt, NEW_TOKENS, sampling={"num_logprobs": 3}) for prompt in prompts]
        stepper.run(runs)
        return [outcome(run) for run in runs]

    undisturbed = go()
    over, yields = threading.Event(), 0

    def take_core() -> None:
        nonlocal yields
        while not over.wait(0.001):
            with stepper.executor.yield_core():
                yields += 1
                over.wait(0.002)

    taker = threading.Thread(target=take_core)
    taker.start()
    try:
        disturbed = go()
    finally:
        over.set()
        taker.join()
    assert disturbed == undisturbed
    assert yields > 1
