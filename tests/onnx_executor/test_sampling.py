"""The native sampler on logits in numpy, compared with the numpy reference, on all kinds of rows."""

from dataclasses import replace

import numpy as np
import pytest

from engine._core import RowSampler
from engine.api.errors import ExecutorError
from engine.executors.base import MAX_TOP_LOGPROBS
from engine.executors.onnx.sampling import StepSampler
from engine.executors.reference_sampler import sample_reference
from engine.grammar.matcher import mask_words
from tests.torch_executor.test_sampler import KINDS, VOCAB, plan_of

COUNT = len(KINDS) + 1


def sampled(logits, plan):
    sampler = StepSampler(RowSampler(VOCAB), plan)
    for index in np.flatnonzero(plan.needs_logits).tolist():
        sampler.sample(index, logits[index : index + 1].copy())
    return sampler.result


def check_equal(logits, plan):
    expected, got = sample_reference(logits, plan), sampled(logits, plan)
    for name in ("sampled", "failed"):
        assert getattr(got, name).tolist() == getattr(expected, name).tolist()
    for index, row in enumerate(plan.rows):
        wanted = max(int(plan.sampling[row]["num_logprobs"]), 0)
        if not got.failed[index]:
            assert got.top_ids[index, :wanted].tolist() == expected.top_ids[index, :wanted].tolist()
    for name in ("logprobs", "token_id_logprobs"):
        pair = (getattr(got, name), getattr(expected, name))
        np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("trial", range(10))
def test_all_kinds_of_rows(trial):
    generator = np.random.default_rng(trial)
    listed = [(0, 3), (0, 300), (0, 3), (2, 9), (16, 0), (len(KINDS), 5)]
    biased = [(0, 3, 50.0), (2, 9, -100.0), (16, 1, 7.0)]
    plan = plan_of(KINDS, generator, biased=biased, listed=listed)
    check_equal(generator.normal(0, 4, (COUNT, VOCAB)).astype(np.float32), plan)


def test_ties_go_to_the_lowest_id():
    generator = np.random.default_rng(1)
    plan = plan_of(KINDS, generator)
    check_equal(generator.integers(-2, 3, (COUNT, VOCAB)).astype(np.float32), plan)


@pytest.mark.parametrize("trial", range(5))
def test_grammar_masks_and_unusable_logits_of_some_rows(trial):
    generator = np.random.default_rng(100 + trial)
    plan = plan_of(KINDS, generator, biased=[(0, 3, 50.0), (2, 9, -100.0)])
    masked = np.flatnonzero(generator.random(COUNT) < 0.5).astype(np.int32)
    bits = generator.integers(0, 2**32, (len(masked), mask_words(VOCAB)), dtype=np.uint32)
    bits[1] = 0  # fails its row
    logits = generator.normal(0, 4, (COUNT, VOCAB)).astype(np.float32)
    logits[5, 7] = np.nan
    logits[8] = -np.inf
    plan = replace(plan, mask_rows=masked, mask_bits=bits)
    check_equal(logits, plan)
    assert sampled(logits, plan).failed[[5, 8, masked[1]]].all()


def test_scores_and_ranks():
    generator = np.random.default_rng(4)
    plan = plan_of([{}], generator)
    targets = generator.integers(0, VOCAB, 6).astype(np.int32)
    tops = np.array([0, 1, 5, MAX_TOP_LOGPROBS, 3, 2], np.int32)
    plan = replace(plan, score_tokens=np.zeros(6, np.int32), score_targets=targets, score_tops=tops)
    logits = generator.integers(-3, 4, (6, VOCAB)).astype(np.float32)
    logits[4] = np.nan
    expected = sample_reference(np.zeros((2, VOCAB), np.float32), plan, logits)
    sampler = StepSampler(RowSampler(VOCAB), plan)
    for at in range(6):
        sampler.score(at, logits[at])
    got = sampler.result
    np.testing.assert_allclose(got.score_logprobs, expected.score_logprobs, atol=1e-5)
    assert got.score_ranks.tolist() == expected.score_ranks.tolist()
    for at, count in enumerate(tops.tolist()):
        if at != 4:
            ids = got.score_top_ids[at, :count].tolist()
            assert ids == expected.score_top_ids[at, :count].tolist()


def test_a_plan_out_of_range_names_its_entry():
    generator = np.random.default_rng(5)
    plan = plan_of([{}, {"temperature": -1.0}], generator)
    with pytest.raises(ExecutorError, match="out of range") as caught:
        sampled(np.zeros((3, VOCAB), np.float32), plan)
    assert caught.value.entry == 1
