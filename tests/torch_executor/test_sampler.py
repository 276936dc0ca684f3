"""The torch sampler, compared with the numpy reference, on all kinds of rows in one batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.executors import reference_sampler
from engine.executors.base import MAX_TOP_LOGPROBS, SAMPLING_DTYPE, StepPlan
from engine.executors.torch.gumbel import gumbel_noise, mix64
from engine.executors.torch.packed_copy import to_device
from engine.executors.torch.sampler import sample
from engine.executors.torch.sampling_batch import sampling_batch
from engine.executors.torch.step_layout import build_layout
from engine.executors.torch.step_result import step_result
from engine.executors.torch.top_tokens import top_tokens
from engine.grammar.matcher import mask_words
from engine.text.sequence_breakers import MAX_BREAKER_TAIL
from tests.torch_executor.loaded import DEVICE

VOCAB = 301
KINDS = [
    {},
    {"temperature": 1.0},
    {"temperature": 0.3, "top_p": 0.9},
    {"temperature": 1.5, "top_k": 7},
    {"temperature": 1.0, "top_k": 1},
    {"temperature": 1.0, "top_k": 10_000, "top_p": 1e-6},
    {"temperature": 0.9, "top_k": 40, "top_p": 0.8, "min_p": 0.05},
    {"temperature": 1.0, "min_p": 1.0},
    {"temperature": 1.0, "min_p": 0.1},
    {"repetition_penalty": 1.7},
    {"temperature": 0.8, "repetition_penalty": 0.6, "presence_penalty": 1.5},
    {"frequency_penalty": 1.1, "presence_penalty": -0.7},
    {"temperature": 2.0, "frequency_penalty": -2.0, "top_p": 0.5},
    {"dry_multiplier": 5.0, "dry_base": 1.5, "dry_penalty_last_n": -1},
    {
        "temperature": 0.8,
        "dry_multiplier": 0.8,
        "dry_base": 1.75,
        "dry_allowed_length": 1,
        "dry_penalty_last_n": 20,
        "presence_penalty": 0.3,
        "first_breaker": 1,
        "num_breakers": 1,
    },
    {"num_logprobs": 0},
    {"num_logprobs": MAX_TOP_LOGPROBS, "temperature": 1.0},
    {"num_logprobs": 5, "repetition_penalty": 1.3, "top_p": 0.7, "temperature": 0.7},
]


def plan_of(kinds, generator, *, biased=(), listed=()):
    """A decode step with rows in random order, the last of which needs no logits."""
    count = len(kinds)
    max_rows = count + 5
    rows = generator.permutation(max_rows)[: count + 1].astype(np.int32)
    sampling = np.zeros(max_rows, SAMPLING_DTYPE)
    for row in range(max_rows):
        sampling[row]["top_p"] = sampling[row]["repetition_penalty"] = 1
        sampling[row]["num_logprobs"] = -1
    for row, kind in zip(rows, kinds, strict=False):
        sampling[row]["seed"] = generator.integers(0, 2**64, dtype=np.uint64)
        for name, value in kind.items():
            sampling[row][name] = value
    num_tokens = generator.integers(2, 30, max_rows).astype(np.int32)
    tails = np.full((2, MAX_BREAKER_TAIL), -1, np.int32)
    tails[0, 0] = 3
    listed = sorted(((int(rows[index]), token) for index, token in listed), key=lambda one: one[0])
    bias = sorted((int(rows[index]), token, value) for index, token, value in biased)
    return StepPlan(
        rows=rows,
        query_start=np.arange(count + 2, dtype=np.int32),
        token_ids=np.zeros(count + 1, np.int32),
        positions=np.zeros(count + 1, np.int32),
        needs_logits=np.array([1] * count + [0], np.uint8),
        block_tables=np.zeros((max_rows, 1), np.int32),
        token_table=generator.integers(0, np.resize([6, 40], (max_rows, 1)), (max_rows, 32)).astype(
            np.int32
        ),
        num_tokens=num_tokens,
        penalty_start=(num_tokens // 2).astype(np.int32),
        sampling=sampling,
        bias_rows=np.array([row for row, _, _ in bias], np.int32),
        bias_ids=np.array([token for _, token, _ in bias], np.int32),
        bias_values=np.array([value for _, _, value in bias], np.float32),
        logprob_rows=np.array([row for row, _ in listed], np.int32),
        logprob_ids=np.array([token for _, token in listed], np.int32),
        breaker_heads=generator.integers(0, 2, (2, mask_words(VOCAB)), dtype=np.uint32) << 5,
        breaker_tails=tails,
    )


def both(logits, plan):
    """The reference's result, and that of the sampler."""
    layout = build_layout(plan, block_size=8)
    device = torch.device(DEVICE)
    batch = sampling_batch(plan, layout.sampled_rows, layout.draft_index, device)
    sampled = sample(torch.from_numpy(logits[layout.sampled_rows]).to(device), batch)
    got = step_result(plan, layout, sampled, None, batch.logprob_entries)
    return reference_sampler.sample_reference(logits, plan), got


def check_equal(logits, plan):
    expected, got = both(logits, plan)
    for name in ("sampled", "failed", "top_ids"):
        assert getattr(got, name).tolist() == getattr(expected, name).tolist()
    for name in ("logprobs", "top_logprobs", "token_id_logprobs"):
        pair = (getattr(got, name), getattr(expected, name))
        np.testing.assert_allclose(*pair, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("trial", range(20))
def test_all_kinds_of_rows_in_one_batch(trial):
    generator = np.random.default_rng(trial)
    listed = [
        (0, 3),
        (0, 300),
        (0, 3),
        (2, 9),
        (16, 0),
        (len(KINDS), 5),
    ]  # the last does not sample
    biased = [(0, 3, 50.0), (2, 9, -100.0), (16, 1, 7.0)]
    plan = plan_of(KINDS, generator, biased=biased, listed=listed)
    logits = generator.normal(0, 4, (len(KINDS) + 1, VOCAB)).astype(np.float32)
    check_equal(logits, plan)


def test_ties_go_to_the_lowest_id():
    generator = np.random.default_rng(1)
    plan = plan_of(KINDS, generator)
    logits = generator.integers(-2, 3, (len(KINDS) + 1, VOCAB)).astype(np.float32)
    check_equal(logits, plan)


def test_masked_tokens_are_never_sampled():
    generator = np.random.default_rng(2)
    kinds = [{"temperature": 5.0}, {"temperature": 5.0, "top_p": 0.99}, {"temperature": 5.0}]
    plan = plan_of(kinds, generator)
    logits = np.full((4, VOCAB), -np.inf, np.float32)
    logits[:, [7, 12]] = 0.0
    check_equal(logits, plan)
    _, got = both(logits, plan)
    assert set(got.sampled[:3].tolist()) <= {7, 12}


@pytest.mark.parametrize("trial", range(10))
def test_grammar_masks_of_some_rows(trial):
    generator = np.random.default_rng(100 + trial)
    plan = plan_of(KINDS, generator, biased=[(0, 3, 50.0), (2, 9, -100.0)])
    count = len(KINDS) + 1
    masked = np.flatnonzero(generator.random(count) < 0.5).astype(np.int32)
    bits = generator.integers(0, 2**32, (len(masked), mask_words(VOCAB)), dtype=np.uint32)
    bits[::3] &= generator.integers(0, 2**32, bits[::3].shape, dtype=np.uint32) & 0x11111111
    bits[1] = 0  # fails its row
    plan = replace(plan, mask_rows=masked, mask_bits=bits)
    logits = generator.normal(0, 4, (count, VOCAB)).astype(np.float32)
    logits[5, 7] = np.nan
    check_equal(logits, plan)
    _, got = both(logits, plan)
    assert got.failed[masked[1]]


def test_unusable_logits_fail_only_their_row():
    generator = np.random.default_rng(3)
    plan = plan_of(KINDS, generator)
    logits = generator.normal(0, 4, (len(KINDS) + 1, VOCAB)).astype(np.float32)
    logits[2, 5] = np.nan
    logits[14] = -np.inf
    check_equal(logits, plan)
    _, got = both(logits, plan)
    assert np.flatnonzero(got.failed).tolist() == [2, 14]


@pytest.mark.parametrize("kind", [{}, {"num_logprobs": 0}, {"temperature": 1.0}])
def test_rows_that_need_little(kind):
    generator = np.random.default_rng(5)
    plan = plan_of([kind] * 4, generator)
    logits = generator.integers(-2, 3, (5, VOCAB)).astype(np.float32)
    logits[1, 5] = np.nan
    logits[2] = -np.inf
    if not kind:  # the others have no log-probabilities then
        logits[3, 7] = np.inf
    check_equal(logits, plan)


def test_nothing_is_copied_for_greedy_rows(monkeypatch):
    generator = np.random.default_rng(6)
    greedy, mixed = (
        plan_of(kinds, generator) for kinds in ([{}] * 3, [{}, {"repetition_penalty": 1.2}])
    )
    copies = []
    monkeypatch.setattr(
        "engine.executors.torch.sampling_batch.to_device",
        lambda arrays, device: copies.append(len(arrays)) or to_device(arrays, device),
    )
    for plan in (greedy, mixed):
        sampled = np.flatnonzero(plan.needs_logits)
        batch = sampling_batch(plan, sampled, np.zeros_like(sampled), torch.device(DEVICE))
        assert batch.plain == (plan is greedy)
    assert len(copies) == 1


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_the_noise_equals_the_reference_bit_for_bit(seed):
    ids = np.arange(500)
    for position in (0, 1, 77, 2**20):
        expected = reference_sampler.gumbel_noise(seed, position, ids)
        bits = torch.from_numpy(np.array([seed], np.uint64).view(np.int64))
        got = gumbel_noise(bits, torch.tensor([position]), 500)[0]
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_mix64_wraps_like_unsigned():
    values = np.random.default_rng(4).integers(0, 2**64, 1000, dtype=np.uint64)
    got = mix64(torch.from_numpy(values.view(np.int64))).numpy().view(np.uint64)
    assert (got == reference_sampler.mix64(values)).all()


def test_top_tokens_orders_ties_signs_and_infinities():
    values = torch.tensor([[0.0, -0.0, 1.0, -1.0, 1.0, float("-inf"), float("inf"), -1.0]])
    assert top_tokens(values, 8).tolist() == [[6, 2, 4, 0, 1, 3, 7, 5]]
