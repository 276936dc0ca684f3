"""The native sampler, compared with the numpy reference."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import _core
from engine.api.errors import ExecutorError, InvalidRequest
from engine.api.request import SamplingParams
from engine.batch.sampling_validator import SamplingValidator
from engine.executors.base import (
    MAX_LOGPROB_TOKEN_IDS,
    MAX_TOP_LOGPROBS,
    NO_BREAKER_HEADS,
    NO_BREAKER_TAILS,
    SAMPLING_DTYPE,
    Executor,
    StepPlan,
    StepResult,
)
from engine.executors.reference_sampler import dry_penalties, sample_reference
from engine.text.sequence_breakers import MAX_BREAKER_TAIL
from tests.parity.loading import load_stepper
from tests.parity.reference import logits
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_models import TINY_MODELS, VOCAB, save_tiny_model

ROWS = 8


class CheckedExecutor:
    """Repeats the sampling of each step with the reference sampler, on the oracle's logits."""

    def __init__(self, executor: Executor, model: torch.nn.Module) -> None:
        self.info = executor.info
        self._executor = executor
        self._model = model

    def execute(self, plan: StepPlan) -> StepResult:
        result = self._executor.execute(plan)
        rows = [
            logits(self._model, plan.token_table[row, : plan.num_tokens[row]].tolist())[-1]
            for row in plan.rows
        ]
        expected = sample_reference(np.stack(rows), plan)
        np.testing.assert_array_equal(result.sampled, expected.sampled)
        np.testing.assert_array_equal(result.failed, expected.failed)
        np.testing.assert_allclose(result.logprobs, expected.logprobs, atol=1e-4)
        np.testing.assert_allclose(
            result.token_id_logprobs, expected.token_id_logprobs, atol=1e-4, equal_nan=True
        )
        for batch, row in enumerate(plan.rows):
            wanted = max(int(plan.sampling[row]["num_logprobs"]), 0)
            np.testing.assert_array_equal(
                result.top_ids[batch, :wanted], expected.top_ids[batch, :wanted]
            )
        return result

    def close(self) -> None:
        self._executor.close()


@pytest.fixture(scope="module")
def steppers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stepper, Stepper]]:
    """A stepper that checks every sample, and a plain one, with the same model."""
    directory: Path = tmp_path_factory.mktemp("tiny")
    model = save_tiny_model(TINY_MODELS[0], directory, torch.float32)
    checked = load_stepper(directory, rows=ROWS)
    unchecked = load_stepper(directory, rows=ROWS)
    checked.executor = CheckedExecutor(checked.executor, model)
    yield checked, unchecked
    checked.executor.close()
    unchecked.executor.close()


@pytest.fixture
def checked(steppers: tuple[Stepper, Stepper]) -> Stepper:
    return steppers[0]


@pytest.fixture
def stepper(steppers: tuple[Stepper, Stepper]) -> Stepper:
    return steppers[1]


PROMPT = [5, 9, 200, 7, 5, 5, 31]

SAMPLINGS = {
    "greedy": {"temperature": 0.0},
    "plain": {"temperature": 1.0},
    "hot": {"temperature": 3.0},
    "cold": {"temperature": 0.05},
    "top-k": {"temperature": 1.5, "top_k": 5},
    "top-1": {"temperature": 1.5, "top_k": 1},
    "top-k-of-all": {"temperature": 1.5, "top_k": 10 * VOCAB},
    "top-p": {"temperature": 1.5, "top_p": 0.7},
    "tiny-top-p": {"temperature": 1.5, "top_p": 1e-6},
    "min-p": {"temperature": 2.0, "min_p": 0.1},
    "min-p-one": {"temperature": 2.0, "min_p": 1.0},
    "all-three": {"temperature": 2.0, "top_k": 40, "top_p": 0.9, "min_p": 0.02},
    "repetition": {"temperature": 0.0, "repetition_penalty": 1.4},
    "less-than-one": {"temperature": 1.0, "repetition_penalty": 0.8},
    "presence": {"temperature": 0.0, "presence_penalty": 1.5},
    "frequency": {"temperature": 0.0, "frequency_penalty": 0.7},
    "negative": {"temperature": 1.0, "presence_penalty": -1.0, "frequency_penalty": -0.5},
    "dry": {
        "temperature": 0.0,
        "dry_multiplier": 0.8,
        "dry_base": 1.75,
        "dry_allowed_length": 1,
        "dry_penalty_last_n": -1,
    },
    "dry-of-few": {
        "temperature": 0.9,
        "dry_multiplier": 5.0,
        "dry_base": 2.0,
        "dry_penalty_last_n": 5,
        "num_logprobs": 2,
    },
    "logprobs": {"temperature": 1.0, "num_logprobs": MAX_TOP_LOGPROBS},
    "own-logprob": {"temperature": 0.7, "num_logprobs": 0, "repetition_penalty": 1.3},
}


@pytest.mark.parametrize("name", SAMPLINGS)
def test_every_sample_equals_the_reference(checked: Stepper, name: str) -> None:
    runs = [
        Run(PROMPT, 12, sampling={**SAMPLINGS[name], "seed": seed}) for seed in (0, 1, 2**64 - 1)
    ]
    checked.run(runs)


def test_mixed_parameters_and_biases_in_one_step(checked: Stepper) -> None:
    names = ["greedy", "all-three", "repetition", "logprobs", "hot", "frequency"]
    runs = [
        Run(PROMPT, 8, sampling={**SAMPLINGS[name], "seed": seed}, bias=[(seed, 2.0), (100, -50.0)])
        for seed, name in enumerate(names)
    ]
    checked.run(runs)


def test_logprobs_of_token_ids_equal_the_reference(checked: Stepper) -> None:
    listed = [(0, VOCAB - 1), (), (7,), (9, 9, 5), range(MAX_LOGPROB_TOKEN_IDS)]
    runs = [
        Run(
            PROMPT[: 7 - seed],
            6,
            arrival=seed % 2,
            sampling={**SAMPLINGS[name], "seed": seed},
            bias=[(9, 20.0)],
            logprob_ids=list(listed[seed]),
        )
        for seed, name in enumerate(["greedy", "hot", "repetition", "logprobs", "all-three"])
    ]
    checked.run(runs)
    assert [len(run.id_logprobs[0]) for run in runs] == [2, 0, 1, 3, MAX_LOGPROB_TOKEN_IDS]
    # The values of the biased token in the row that also reports its sampled tokens' logprobs.
    mine = runs[3]
    for token, logprob, values in zip(mine.tokens, mine.logprobs, mine.id_logprobs, strict=True):
        assert values[0] == values[1]
        assert (token == 9) <= (values[0] == logprob)


def test_a_seed_is_reproducible_and_another_differs(stepper: Stepper) -> None:
    def draw(seed: int, **fields: object) -> list[int]:
        run = Run(PROMPT, 30, sampling={"temperature": 1.0, "seed": seed}, **fields)
        stepper.run([run, Run([3, 4], 5, sampling={"temperature": 1.0, "seed": seed})])
        return run.tokens

    assert draw(7) == draw(7) == draw(7, chunks=[1, 2], arrival=3)
    assert draw(7) != draw(8)


def test_frequencies_follow_the_distribution(stepper: Stepper) -> None:
    """A chi-square test over many seeds, on a distribution limited to the ten likeliest tokens."""
    draws, kept = 4000, 10
    counts: dict[int, int] = {}
    top: list[tuple[int, float]] = []
    for start in range(0, draws, ROWS):
        sampling = {"temperature": 1.0, "top_k": kept, "num_logprobs": kept}
        runs = [Run(PROMPT, 1, sampling={**sampling, "seed": start + i}) for i in range(ROWS)]
        stepper.run(runs)
        top = runs[0].top[0]
        for run in runs:
            counts[run.tokens[0]] = counts.get(run.tokens[0], 0) + 1
    shares = np.exp([logprob for _, logprob in top])
    expected = draws * shares / shares.sum()
    observed = np.array([counts.get(token, 0) for token, _ in top])
    assert observed.sum() == draws
    likely = expected > 5
    chi_square = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
    assert chi_square < 27.9  # nine degrees of freedom, p = 0.001; seeds are fixed


def test_parameter_records_are_laid_out_as_in_rust() -> None:
    layout = [
        (name, offset, dtype.itemsize)
        for name, (dtype, offset, *_) in sorted(
            SAMPLING_DTYPE.fields.items(), key=lambda field: field[1][1]
        )
    ]
    assert layout == _core.SAMPLING_ROW_LAYOUT
    assert SAMPLING_DTYPE.itemsize == 64
    assert _core.MAX_BREAKER_TAIL == MAX_BREAKER_TAIL
    assert _core.MAX_TOP_LOGPROBS == MAX_TOP_LOGPROBS
    assert _core.MAX_LOGPROB_TOKEN_IDS == MAX_LOGPROB_TOKEN_IDS


def test_a_step_with_an_invalid_entry_names_it(stepper: Stepper) -> None:
    with pytest.raises(ExecutorError, match="Step entry 1 has sampling parameters") as refused:
        stepper.run([Run(PROMPT, 2), Run(PROMPT, 2, sampling={"top_p": 0.0}), Run(PROMPT, 2)])
    assert refused.value.entry == 1


@given(
    tokens=st.lists(st.integers(0, 3), min_size=1, max_size=80)
    | st.builds(
        lambda unit, count, tail: unit * count + tail,
        st.lists(st.integers(0, 40), min_size=1, max_size=9),
        st.integers(1, 9),
        st.lists(st.integers(0, 40), max_size=3),
    ),
    multiplier=st.sampled_from([0.25, 0.8, 100.0]),
    base=st.floats(1, 100, width=32),
    allowed_length=st.integers(0, 6),
    last_n=st.integers(-1, 90),
    patterns=st.lists(
        st.tuples(st.sets(st.integers(0, 40)), st.lists(st.integers(0, 3), max_size=3)), max_size=3
    ),
)
def test_dry_penalties_equal_the_definition(
    tokens: list[int],
    multiplier: float,
    base: float,
    allowed_length: int,
    last_n: int,
    patterns: list[tuple[set[int], list[int]]],
) -> None:
    """Bit by bit: the oracle compares every pair of positions, the kernel uses the Z-algorithm."""
    heads = np.zeros((len(patterns), 2), np.uint32)
    tails = np.full((len(patterns), MAX_BREAKER_TAIL), -1, np.int32)
    for at, (ids, tail) in enumerate(patterns):
        tails[at, : len(tail)] = tail
        for token in ids:
            heads[at, token // 32] |= np.uint32(1 << token % 32)
    sampling = np.zeros(1, SAMPLING_DTYPE)
    sampling["dry_multiplier"], sampling["dry_base"] = multiplier, base
    sampling["dry_allowed_length"], sampling["dry_penalty_last_n"] = allowed_length, last_n
    sampling["num_breakers"] = len(patterns)
    table = np.array(tokens, np.int32)
    expected = dry_penalties(table, sampling[0], heads, tails)
    found = _core.dry_penalties(
        table,
        multiplier=multiplier,
        base=base,
        allowed_length=allowed_length,
        penalty_last_n=last_n,
        breaker_heads=heads,
        breaker_tails=tails,
    )
    assert len(found) == len(expected)
    assert dict(found) == expected


def _repeated_pairs(tokens: list[int]) -> int:
    pairs = list(pairwise(tokens))
    return len(pairs) - len(set(pairs))


def test_a_repetition_is_penalised_in_steps_with_breakers_and_drafts(stepper: Stepper) -> None:
    """A large penalty excludes pairs of tokens that occurred before; drafts change nothing."""

    def answer(**fields: Any) -> Run:
        few = [(token, 20.0) for token in range(10, 20)]
        run = Run(PROMPT, 60, bias=few, **fields)
        stepper.run([Run([3, 4], 5), run])
        return run

    dry = {"dry_multiplier": 40.0, "dry_base": 1.75, "dry_penalty_last_n": -1}
    dry["dry_allowed_length"] = 1
    plain, free = answer(), answer(sampling=dry)
    assert _repeated_pairs(plain.tokens) > _repeated_pairs(free.tokens) == 0
    drafted = answer(sampling=dry, drafts=lambda tokens: free.tokens[len(tokens) - 7 :][:4])
    assert (drafted.tokens, drafted.accepted > 0) == (free.tokens, True)
    # If every token is a sequence breaker, nothing is a repetition.
    heads = np.zeros((1, -(-VOCAB // 32)), np.uint32)
    heads[0, [token // 32 for token in range(VOCAB)]] = 2**32 - 1
    stepper.breaker_heads, stepper.breaker_tails = heads, np.full((1, MAX_BREAKER_TAIL), -1, "i4")
    try:
        assert answer(sampling={**dry, "num_breakers": 1}).tokens == plain.tokens
    finally:
        stepper.breaker_heads, stepper.breaker_tails = NO_BREAKER_HEADS, NO_BREAKER_TAILS


SMALLEST_AND_LARGEST = {
    "temperature": (0.0, 1e-45, 1e-5, 1e30),
    "top_p": (1e-46, 1e-40, 1e-30, 1.0),
    "min_p": (0.0, 1e-45, 1.0),
    "repetition_penalty": (1e-46, 1e-40, 1e-30, 0.001, 1000.0, 1e30, 3.5e38),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
    "dry_multiplier": (0.0, 1e-45, 100.0),
    "dry_base": (0.0, 1.0, 100.0),
    "dry_allowed_length": (0, 2**31 - 1),
    "dry_penalty_last_n": (-1, 0, 1, 2**31 - 1),
    "top_k": (0, 1, 2**31 - 1),
    "logit_bias": ((), ((7, -100.0), (200, 100.0))),
}


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.sampled_from(values)
            | (st.nothing() if isinstance(values[0], int | tuple) else st.floats(width=64))
            for name, values in SMALLEST_AND_LARGEST.items()
        },
    )
)
def test_every_valid_combination_of_parameters_samples_a_token(
    steppers: tuple[Stepper, Stepper], params: dict[str, Any]
) -> None:
    """A row that the executor refuses would end every request of its step."""
    try:
        SamplingValidator(VOCAB).validate(SamplingParams(**params))
    except InvalidRequest:
        return
    record = SamplingValidator.pack(SamplingParams(**params), seed=0)
    sampling = {name: record[name].item() for name in record.dtype.names}
    run = Run(PROMPT, 2, sampling=sampling, bias=params.get("logit_bias", ()))
    neighbour = Run(PROMPT, 2)
    steppers[1].run([run, neighbour])
    assert not run.failed
    assert not neighbour.failed
