import math
from dataclasses import replace

import numpy as np
import pytest

from engine.api.errors import InvalidRequest
from engine.api.request import SamplingParams
from engine.batch.sampling_validator import SamplingValidator

SAMPLER = SamplingValidator(vocab_size=100)

REFUSED = {
    "temperature": [-0.1, 1e39, 10**39, math.nan, math.inf, True, "1", None],
    "top_p": [0.0, 1e-46, 1e-40, -0.1, 1.01, math.nan, False],
    "min_p": [-0.01, 1.01, math.nan, True],
    "repetition_penalty": [0.0, 1e-46, 1e-40, 1e39, -1.0, math.inf, math.nan],
    "presence_penalty": [-2.01, 2.01, math.nan],
    "frequency_penalty": [-2.01, 2.01, -math.inf],
    "dry_multiplier": [-0.1, 100.1, math.nan, True],
    "dry_base": [0.0, 0.99, 101, math.inf],
    "dry_allowed_length": [-1, 2.0, 2**31],
    "dry_penalty_last_n": [-2, 1.0, 2**31],
    "dry_sequence_breakers": [("",), ("a" * 41,), (1,), ("a",) * 17],
    "top_k": [-1, 2.0, True, 2**31],
    "seed": [-1, 2**64, 1.0, True],
    "logprobs": [-1, 21, True, 1.0],
    "max_tokens": [-1, 1.5, True],
    "prompt_logprobs": [-1, 21, 1.5, True],
    "logit_bias": [((100, 1.0),), ((-1, 1.0),), ((1, 100.5),), ((1, math.nan),), ((1, 0.0),) * 2],
    "stop": [("",), ("a",) * 65, (1,)],
    "stop_token_ids": [(100,), (-1,), tuple(range(25)), (True,)],
}

ACCEPTED = {
    "temperature": [0, 0.0, 2, 1e-9, 100.0],
    "top_p": [1e-6, 1, 1.0],
    "min_p": [0, 1.0],
    "repetition_penalty": [0.01, 1, 5.0],
    "presence_penalty": [-2, 2.0],
    "frequency_penalty": [-2.0, 2],
    "dry_multiplier": [0, 0.8, 100],
    "dry_base": [1, 1.75, 100.0],
    "dry_allowed_length": [0, 2**31 - 1],
    "dry_penalty_last_n": [-1, 0, 2**31 - 1],
    "dry_sequence_breakers": [(), ("\n", "a" * 40), ("a",) * 16],
    "top_k": [0, 1, 1000],
    "seed": [0, 2**64 - 1, None],
    "logprobs": [None, 0, 20],
    "max_tokens": [None, 0, 1, 10**9],
    "prompt_logprobs": [None, 0, 20],
    "logit_bias": [(), ((0, -100.0), (99, 100))],
    "stop": [(), ("a",) * 64],
    "stop_token_ids": [(), tuple(range(24))],
}


def cases(table):
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), cases(REFUSED))
def test_refused_by_name(name, value):
    with pytest.raises(InvalidRequest) as caught:
        SAMPLER.validate(replace(SamplingParams(), **{name: value}))
    assert caught.value.param == name
    assert name in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("name", "value"), cases(ACCEPTED))
def test_accepted(name, value):
    SAMPLER.validate(replace(SamplingParams(), **{name: value}))


def test_packing_keeps_every_parameter():
    params = SamplingParams(
        temperature=0.5,
        top_k=7,
        top_p=0.25,
        min_p=0.125,
        repetition_penalty=1.5,
        presence_penalty=-0.5,
        frequency_penalty=2.0,
        dry_multiplier=0.5,
        dry_base=1.25,
        dry_allowed_length=3,
        dry_penalty_last_n=64,
        logprobs=3,
    )
    record = SamplingValidator.pack(params, 2**64 - 1)
    assert record.shape == ()
    assert {name: record[name].item() for name in record.dtype.names} == {
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.25,
        "min_p": 0.125,
        "repetition_penalty": 1.5,
        "presence_penalty": -0.5,
        "frequency_penalty": 2.0,
        "dry_multiplier": 0.5,
        "dry_base": 1.25,
        "dry_allowed_length": 3,
        "dry_penalty_last_n": 64,
        "first_breaker": 0,
        "num_breakers": 0,
        "num_logprobs": 3,
        "seed": 2**64 - 1,
    }


def test_dry_without_a_window_is_off():
    params = SamplingParams(dry_multiplier=1.0, dry_penalty_last_n=0)
    assert SamplingValidator.pack(params, 0)["dry_multiplier"] == 0


def test_no_logprobs_and_zero_alternatives_differ():
    assert SamplingValidator.pack(SamplingParams(), 0)["num_logprobs"] == -1
    assert SamplingValidator.pack(SamplingParams(logprobs=0), 0)["num_logprobs"] == 0


def test_a_temperature_too_small_to_divide_by_is_greedy():
    assert SamplingValidator.pack(SamplingParams(temperature=1e-6), 0)["temperature"] == 0
    assert SamplingValidator.pack(SamplingParams(temperature=1e-4), 0)["temperature"] == np.float32(
        1e-4
    )


def test_biases_are_sorted_by_token():
    ids, values = SamplingValidator.pack_bias(SamplingParams(logit_bias=((9, 1.0), (2, -3.0))))
    assert ids.tolist() == [2, 9]
    assert values.tolist() == [-3.0, 1.0]


def test_stop_ids_join_the_models_own_unless_ignored():
    params = SamplingParams(stop_token_ids=(5, 3))
    assert SamplingValidator.stop_ids(params, {7}) == (3, 5, 7)
    assert SamplingValidator.stop_ids(replace(params, ignore_eos=True), {7}) == (3, 5)
