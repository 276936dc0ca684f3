"""Thresholds of models: found by what a model is, whatever its name."""

from dataclasses import replace

from engine.text.tool_calls import thresholds
from engine.text.tool_calls.thresholds import Threshold, call_thresholds, thresholds_key
from tests.server.scripted_engine import INFO
from tests.server.toy_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()


def test_a_threshold_changes_with_the_number_of_tools():
    falling = Threshold(1.0, -0.5)
    assert falling.of(0) == falling.of(1) == 1.0
    assert falling.of(4) < falling.of(2) < 1.0


def test_name_and_format_of_the_weights_do_not_matter():
    key = thresholds_key(INFO, TOKENIZER)
    assert thresholds_key(replace(INFO, name="x", weight_format="Q8_0"), TOKENIZER) == key
    assert thresholds_key(replace(INFO, parameters=2), TOKENIZER) != key
    assert thresholds_key(INFO, byte_tokenizer(template="{{ messages }}")) != key


def test_a_model_that_was_not_measured_has_none(monkeypatch):
    assert call_thresholds(INFO, TOKENIZER) is None
    key = thresholds_key(INFO, TOKENIZER)
    measured = {"fits": [1.0, -0.1], "several": [0.2, 0.3], "again": [-0.4, 0.0]}
    monkeypatch.setattr(thresholds, "_table", lambda: {key: {"thresholds": measured}})
    found = call_thresholds(INFO, TOKENIZER)
    assert found.fits == Threshold(1.0, -0.1)
    assert found.several == Threshold(0.2, 0.3)
    assert found.again == Threshold(-0.4, 0.0)


def test_the_table_can_be_read():
    for entry in thresholds._table().values():
        assert entry["thresholds"].keys() == {"fits", "several", "again"}
