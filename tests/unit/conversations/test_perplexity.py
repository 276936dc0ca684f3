"""Perplexity of an answer from the logprobs of its tokens."""

import math

import pytest

from engine.conversations.perplexity import perplexity


def test_it_is_the_exponential_of_the_mean_surprisal():
    assert perplexity([math.log(0.5), math.log(0.125)]) == pytest.approx(4.0)
    assert perplexity([0.0, 0.0]) == 1.0


def test_unknown_logprobs_are_left_out():
    assert perplexity([math.nan, math.log(0.25)]) == pytest.approx(4.0)
    assert perplexity([math.nan]) is None
    assert perplexity([]) is None


def test_an_impossible_token_gives_a_large_number():
    assert perplexity([-math.inf, -1.0]) > 1e100
