"""Thresholds of models: found by what a model is, whatever its name."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.tool_calls import thresholds
from engine.text.tool_calls.thresholds import (
    CallThresholds,
    Threshold,
    call_thresholds,
    key_of,
    read_thresholds,
)
from tests.server.scripted_engine import INFO
from tests.server.toy_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()


def test_a_threshold_changes_with_the_number_of_tools():
    falling = Threshold(1.0, -0.5)
    assert falling.of(0) == falling.of(1) == 1.0
    assert falling.of(4) < falling.of(2) < 1.0


def test_name_and_format_of_the_weights_do_not_matter():
    key = key_of(INFO, TOKENIZER)
    assert key_of(replace(INFO, name="x", weight_format="Q8_0"), TOKENIZER) == key
    assert key_of(replace(INFO, parameters=2), TOKENIZER) != key
    assert key_of(INFO, byte_tokenizer(template="{{ messages }}")) != key


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user's own table, read anew."""
    monkeypatch.setenv("PRAVAHA_CACHE_DIR", str(tmp_path))
    thresholds._thresholds.cache_clear()
    yield thresholds.own_table()
    thresholds._thresholds.cache_clear()


def test_a_model_that_was_not_measured_has_none(own):
    assert call_thresholds(INFO, TOKENIZER) is None


def test_a_user_measures_a_model_of_their_own(own):
    measured = {"fits": [1.0, -0.1], "several": [0.2, 0.3], "again": [-0.4, 0]}
    key = key_of(INFO, TOKENIZER)
    own.write_text(json.dumps({key: {"model": "mine", "thresholds": measured}}))
    assert call_thresholds(INFO, TOKENIZER) == CallThresholds(
        Threshold(1.0, -0.1), Threshold(0.2, 0.3), Threshold(-0.4, 0.0)
    )


def test_the_users_own_measurement_goes_before_ours(own):
    ours = json.loads(Path(thresholds.__file__).with_suffix(".json").read_text())
    key = next(iter(ours))
    mine = {name: [9.0, 0.0] for name in ("fits", "several", "again")}
    own.write_text(json.dumps({key: {"thresholds": mine}}))
    found = thresholds._thresholds()
    assert found[key].fits == Threshold(9.0, 0.0)
    assert found.keys() == ours.keys()


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "7", '{"k": 1}', '{"k": {}}', '{"k": {"thresholds": {"fits": [1, 2]}}}',
        '{"k": {"thresholds": {"fits": [1], "several": [1, 2], "again": [1, 2]}}}',
        '{"k": {"thresholds": {"fits": ["x", 2], "several": [1, 2], "again": [1, 2]}}}',
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_left_out_and_named_in_the_log(own, caplog, text):
    own.write_text(text)
    assert thresholds._thresholds()
    assert str(own) in caplog.text


@given(st.binary(max_size=60))
def test_any_bytes_are_a_table_or_a_value_error(data):
    with contextlib.suppress(ValueError):
        assert isinstance(read_thresholds(data), dict)
