"""Draft tokens change only the number of steps: tokens, logprobs and alternatives have the same bits."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.parity.drafting import guesser
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run, Stepper

VOCAB, NEW_TOKENS = 49152, 14

SAMPLINGS = {
    "greedy": {"num_logprobs": 2},
    "seeded": {"num_logprobs": 2, "temperature": 0.9, "seed": 5},
    "truncated": {"temperature": 1.1, "top_p": 0.8, "top_k": 40, "min_p": 0.01, "seed": 6},
    "penalised": {
        "num_logprobs": 0,
        "temperature": 0.7,
        "repetition_penalty": 1.3,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.4,
        "dry_multiplier": 2.0,
        "dry_base": 1.75,
        "dry_penalty_last_n": -1,
        "seed": 7,
    },
}


@pytest.fixture(scope="module")
def stepper(demo_model: Path) -> Iterator[Stepper]:
    stepper = load_stepper(demo_model, kv_dtype="f16", rows=4, max_tokens=64)
    yield stepper
    stepper.executor.close()


def outcome(run: Run) -> tuple[list[int], list[float], list[list[tuple[int, float]]]]:
    return run.tokens, [x for x in run.logprobs if x == x], run.top


def fresh(run: Run, **changes: object) -> Run:
    lists = {name: [] for name in ("tokens", "logprobs", "top")}
    return replace(run, **lists, accepted=0, **changes)


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_with_and_without_drafts(stepper: Stepper, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    bias = [(int(token), 3.0) for token in rng.integers(17, 49000, 3)]
    plain = [
        Run(rng.integers(17, 49000, n).tolist(), NEW_TOKENS, sampling=SAMPLINGS[kind], bias=bias)
        for n in (1, 31, 40)
    ]
    stepper.run(plain)
    for right in (1.0, 0.7, 0.0):
        # One row with drafts; two, while the third prefills; all three.
        for drafting_rows in (1, 2, 3):
            runs = []
            for number, run in enumerate(plain):
                drafts = guesser(
                    run.tokens, len(run.prompt), VOCAB, length=5, right=right, seed=number
                )
                late = {"arrival": 3 * number} if drafting_rows == 2 else {}
                runs.append(
                    fresh(run, **({"drafts": drafts} if number < drafting_rows else {}), **late)
                )
            stepper.run(runs)
            for run, alone in zip(runs, plain, strict=True):
                assert outcome(run) == outcome(alone)
            accepted = sum(run.accepted for run in runs)
            assert (accepted > 0) == (right > 0)
