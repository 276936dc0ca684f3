"""Estimates of pauses: the mean of those observed, and longer the longer one lasts."""

import pytest

from engine.memory.pauses import (
    FIRST_PERSON_S,
    FIRST_TOOL_S,
    MAX_KEYS,
    MIN_PATIENCE_S,
    PATIENCE,
    PERSON,
    WEIGHT,
    Pauses,
)


def test_before_any_pause_a_person_is_away_for_longer_than_a_tool():
    pauses = Pauses()
    assert pauses.mean("a", "bash") == FIRST_TOOL_S
    assert pauses.mean("a", PERSON) == FIRST_PERSON_S


def test_the_mean_follows_the_pauses_of_the_session_and_tool():
    pauses = Pauses()
    pauses.observe("a", "bash", 8.0)
    pauses.observe("a", "bash", 4.0)
    assert pauses.mean("a", "bash") == pytest.approx(8.0 - WEIGHT * 4.0)
    assert pauses.mean("a", "read") == FIRST_TOOL_S


def test_another_session_is_expected_to_wait_as_long_for_the_same_tool():
    pauses = Pauses()
    pauses.observe("a", "pytest", 40.0)
    assert pauses.mean("b", "pytest") == 40.0


def test_the_rest_of_a_pause_grows_with_it():
    pauses = Pauses()
    pauses.observe("a", "bash", 3.0)
    assert pauses.until_return("a", "bash", 0.0) == 3.0
    assert pauses.until_return("a", "bash", 10.0) == 13.0


def test_patience_is_several_means_of_the_slower_of_session_and_tool():
    pauses = Pauses()
    pauses.observe("a", "bash", 10.0)
    pauses.observe("b", "bash", 2.0)
    assert pauses.patience("b", "bash") == PATIENCE * (10.0 - WEIGHT * 8.0)
    pauses.observe("c", "read", 0.0)
    assert pauses.patience("c", "read") == MIN_PATIENCE_S


def test_few_pauses_are_remembered():
    pauses = Pauses()
    for number in range(MAX_KEYS):
        pauses.observe(f"session {number}", "bash", 1.0)
    assert pauses.mean("session 0", "other") == FIRST_TOOL_S
    pauses.observe("z", "other", 9.0)
    assert pauses.mean("z", "other") == 9.0
