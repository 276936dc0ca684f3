"""Probabilities of options from log-probabilities of labels."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.decisions.probabilities import label_mass, margin_of, option_probabilities, orders

LOGPROBS = st.floats(-1e6, 0.0) | st.just(-math.inf)
SCORES = st.integers(2, 30).flatmap(
    lambda count: st.lists(
        st.lists(LOGPROBS, min_size=count, max_size=count), min_size=1, max_size=2
    )
)


@given(SCORES)
def test_probabilities_sum_to_one_whatever_is_masked(scores):
    found = option_probabilities(scores)
    assert math.fsum(found) == pytest.approx(1)
    assert all(0 <= one <= 1 for one in found)
    assert 0 <= margin_of(found) <= 1
    assert 0 <= label_mass(scores) <= 1


@given(SCORES)
def test_the_order_of_the_options_has_no_effect(scores):
    turned = option_probabilities([one[::-1] for one in scores])
    assert turned[::-1] == pytest.approx(option_probabilities(scores))


def test_one_order_is_the_softmax_of_its_log_probabilities():
    assert option_probabilities([[math.log(0.06), math.log(0.02)]]) == pytest.approx([0.75, 0.25])


def test_what_is_said_about_nothing_is_subtracted():
    scores, empty = [[math.log(0.6), math.log(0.2)]], [[math.log(0.3), math.log(0.1)]]
    assert option_probabilities(scores, empty) == pytest.approx([0.5, 0.5])


def test_the_mass_is_the_mean_over_the_orders():
    scores = [[math.log(0.5), math.log(0.1)], [math.log(0.1), math.log(0.1)]]
    assert label_mass(scores) == pytest.approx(0.4)


def test_the_second_order_is_the_reverse():
    assert orders(3) == ((0, 1, 2), (2, 1, 0))
