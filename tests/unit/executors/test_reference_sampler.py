"""The reference sampler against definitions, worked examples and statistics."""

import numpy as np
import pytest

from engine.api.request import SamplingParams
from engine.batch.sampling_validator import SamplingValidator
from engine.executors.base import StepPlan
from engine.executors.reference_sampler import gumbel_noise, mix64, sample_reference

MASK = 2**64 - 1


def plan_of(params, *, tokens=(1, 2), prompt=2, seed=0):
    bias_ids, bias_values = SamplingValidator.pack_bias(params)
    table = np.zeros((1, 64), np.int32)
    table[0, : len(tokens)] = tokens
    return StepPlan(
        rows=np.zeros(1, np.int32),
        query_start=np.array([0, 1], np.int32),
        token_ids=np.array(tokens[-1:], np.int32),
        positions=np.array([len(tokens) - 1], np.int32),
        block_tables=np.zeros((1, 64), np.int32),
        needs_logits=np.ones(1, np.uint8),
        num_tokens=np.array([len(tokens)], np.int32),
        penalty_start=np.array([prompt], np.int32),
        token_table=table,
        sampling=SamplingValidator.pack(params, seed).reshape(1),
        bias_rows=np.zeros(len(bias_ids), np.int32),
        bias_ids=bias_ids,
        bias_values=bias_values,
        mask_rows=np.zeros(0, np.int32),
        mask_bits=np.zeros((0, 0), np.uint32),
    )


def sample(logits, params, **options):
    result = sample_reference(np.array([logits], np.float32), plan_of(params, **options))
    return int(result.sampled[0])


def support(logits, params, draws=400, **options):
    """Every token that some seed draws."""
    return {sample(logits, params, seed=seed, **options) for seed in range(draws)}


def test_mix64_is_splitmix64s_finaliser():
    def by_hand(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    for value in (0, 1, 12345, MASK, 1 << 63):
        assert int(mix64(np.uint64(value))) == by_hand(value)
    # The first output of splitmix64 seeded with 0 (its published test vector).
    assert int(mix64(np.uint64(0x9E3779B97F4A7C15))) == 0xE220A8397B1DCDAF


def test_noise_by_hand():
    def mix(z):
        return int(mix64(np.uint64(z & MASK)))

    seed, position, token = 42, 7, 1234
    h = mix(mix(seed ^ mix(position)) ^ (token * 0x9E3779B97F4A7C15 & MASK))
    u = ((h >> 40) + 0.5) / 2**24
    expected = -np.log(-np.log(u))
    assert gumbel_noise(seed, position, np.array([token]))[0] == pytest.approx(expected, rel=1e-12)


def test_noise_is_finite_and_gumbel():
    noise = gumbel_noise(3, 9, np.arange(200_000))
    assert np.isfinite(noise).all()
    assert noise.mean() == pytest.approx(np.euler_gamma, abs=0.01)
    assert noise.std() == pytest.approx(np.pi / np.sqrt(6), abs=0.01)


def test_greedy_takes_the_lowest_id_of_a_tie():
    assert sample([0, 3, 3, 1], SamplingParams(temperature=0)) == 1


def test_draws_follow_the_distribution():
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    draws = [sample(logits, SamplingParams(), seed=seed) for seed in range(4000)]
    shares = np.bincount(draws, minlength=4) / 4000
    assert shares == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.025)


def test_temperature_sharpens():
    logits = np.log([0.6, 0.4])
    cold = [sample(logits, SamplingParams(temperature=0.25), seed=seed) for seed in range(2000)]
    expected = 0.6**4 / (0.6**4 + 0.4**4)
    assert np.mean(np.array(cold) == 0) == pytest.approx(expected, abs=0.03)


def test_top_k():
    logits = [1.0, 1.2, 0.9, 1.1]
    assert support(logits, SamplingParams(top_k=2)) == {1, 3}
    assert support(logits, SamplingParams(top_k=1)) == {1}
    assert support(logits, SamplingParams(top_k=9)) == {0, 1, 2, 3}


def test_ties_at_the_kth_go_to_the_lowest_ids():
    assert support([1.0, 2.0, 1.0, 1.0], SamplingParams(top_k=3)) == {0, 1, 2}


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    logits = np.log([0.1, 0.5, 0.3, 0.1])
    assert support(logits, SamplingParams(top_p=0.49)) == {1}
    assert support(logits, SamplingParams(top_p=0.51)) == {1, 2}
    assert support(logits, SamplingParams(top_p=0.85)) == {0, 1, 2}
    assert support(logits, SamplingParams(top_p=1e-6)) == {1}


def test_top_p_is_taken_after_top_k():
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    # Among the two kept, the first holds 4/7 = 0.571.
    assert support(logits, SamplingParams(top_k=2, top_p=0.55)) == {0}
    assert support(logits, SamplingParams(top_k=2, top_p=0.6)) == {0, 1}


def test_min_p_is_relative_to_the_likeliest():
    logits = np.log([0.5, 0.26, 0.24])
    assert support(logits, SamplingParams(min_p=0.5)) == {0, 1}
    assert support(logits, SamplingParams(min_p=1.0)) == {0}


def test_logit_bias_is_added_first():
    params = SamplingParams(temperature=0, logit_bias=((2, 5.0), (0, -5.0)))
    assert sample([3.0, 2.0, 1.0], params) == 2


def test_repetition_penalty_covers_prompt_and_output():
    params = SamplingParams(temperature=0, repetition_penalty=2.0)
    # 3.0 / 2 and -1.0 * 2: seen tokens lose whatever their sign.
    assert sample([3.0, 2.0, 0.0], params, tokens=(0, 1), prompt=1) == 0
    assert sample([3.0, 1.6, 0.0], params, tokens=(0, 0), prompt=2) == 1
    assert sample([-1.0, -1.5, -9.0], params, tokens=(0, 2), prompt=1) == 1


def test_presence_and_frequency_cover_the_output_alone():
    logits = [3.0, 2.5, 0.0]
    presence = SamplingParams(temperature=0, presence_penalty=1.0)
    frequency = SamplingParams(temperature=0, frequency_penalty=0.4)
    assert sample(logits, presence, tokens=(0, 0, 2), prompt=2) == 0
    assert sample(logits, presence, tokens=(2, 2, 0), prompt=2) == 1
    assert sample(logits, frequency, tokens=(2, 0), prompt=1) == 0
    assert sample(logits, frequency, tokens=(2, 0, 0), prompt=1) == 1


def test_a_draw_depends_on_seed_and_position_alone():
    logits = np.zeros(50)
    one = sample(logits, SamplingParams(), tokens=(1, 2, 3), seed=5)
    assert sample(logits, SamplingParams(), tokens=(9, 9, 9), seed=5) == one
    others = {
        sample(logits, SamplingParams(), tokens=(1,) * n, prompt=1, seed=5) for n in range(2, 30)
    }
    assert len(others) > 10


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [-np.inf, -np.inf]])
def test_rows_without_usable_logits_fail(bad):
    result = sample_reference(np.array([bad], np.float32), plan_of(SamplingParams()))
    assert (result.failed[0], result.sampled[0]) == (1, -1)


def test_masked_tokens_are_never_drawn():
    assert support([-np.inf, 0.0, -np.inf, 0.0], SamplingParams()) == {1, 3}


def test_logprobs_are_raw_and_sorted():
    logits = np.array([1.0, 3.0, 3.0, 2.0])
    params = SamplingParams(temperature=0, logprobs=3, logit_bias=((0, 50.0),))
    result = sample_reference(logits[None].astype(np.float32), plan_of(params))
    expected = logits - np.log(np.exp(logits).sum())
    assert result.sampled[0] == 0
    assert result.logprobs[0] == pytest.approx(expected[0], abs=1e-6)
    assert result.top_ids[0, :3].tolist() == [1, 2, 3]
    assert result.top_logprobs[0, :3] == pytest.approx(expected[[1, 2, 3]], abs=1e-6)
