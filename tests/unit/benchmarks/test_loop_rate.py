"""The prompts and the measures of `benchmarks/loop_rate.py`."""

import json

import pytest

from benchmarks.loop_rate import PROMPTS, Answer, configuration
from engine.api.generation_defaults import GenerationDefaults
from engine.api.request import FinishReason


def answer(ids, finish=FinishReason.STOP):
    return Answer(handle=None, token_ids=list(ids), finish=finish)


def test_the_unseen_prompts_are_a_hundred_others():
    data = json.loads(PROMPTS.read_text())
    assert (len(data["tuning"]), len(data["unseen"]), len(data["facts"])) == (40, 100, 40)
    everything = [*data["tuning"], *data["unseen"], *(question for question, _ in data["facts"])]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(
    ("text", "temperature", "top_p"),
    [("model", 0.2, 0.8), ("warm:temperature=1", 1, 0.8), ("api:bare,top_p=0.5", 1.0, 0.5)],
)
def test_a_configuration_leaves_the_rest_to_the_model(text, temperature, top_p):
    params = configuration(text).params(GenerationDefaults(temperature=0.2, top_p=0.8))
    assert (params.temperature, params.top_p) == (temperature, top_p)


def test_repeated_text_is_repetitive_before_it_loops():
    verse = list(range(60))
    assert not answer(range(200)).repetitive
    assert answer([*range(100, 160), *verse, *verse, *verse]).repetitive
    assert not answer([1, 2, 3]).repetitive  # shorter than an n-gram
    assert answer([1, 2, 1, 2, 1]).distinct_pairs == 0.5
    assert answer([1]).distinct_pairs == 1.0


def test_an_answer_is_cut_only_by_its_length():
    assert answer([1], FinishReason.LENGTH).cut
    assert not answer([1], FinishReason.STOP).cut
