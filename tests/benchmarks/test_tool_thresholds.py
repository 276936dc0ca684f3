"""Thresholds of calls: what is computed from the probabilities of labelled turns, and the tables."""

import json
import math

import pytest

from benchmarks.tool_calls import SETS
from benchmarks.tool_thresholds import (
    add_to,
    after_first_call,
    far_above,
    fewest_errors,
    quantile,
    rightly_decided,
    thresholds,
    turn_of,
)
from engine.text.tool_calls.thresholds import Threshold, read_thresholds

CASE = {
    "id": "parallel_7",
    "set": "parallel",
    "question": [[{"role": "user", "content": "Oslo and Rome?"}]],
    "function": [
        {
            "name": "weather.get",
            "description": "Weather.",
            "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}},
        }
    ],
    "answer": [
        {"weather.get": {"city": ["Oslo"], "unit": [""]}},
        {"weather.get": {"city": ["Rome"], "unit": [""]}},
    ],
}


def record(group, calls, counts, *, tools=1, name=1.0):
    """A turn whose question has the probabilities of `counts`, by number."""
    digits = [math.log(counts.get(digit, 1e-6)) for digit in range(10)]
    return {
        "group": group,
        "tools": tools,
        "calls": calls,
        "follows_result": False,
        "rows": [digits, [math.log(name)]],
    }


def after(group, calls, chance, tools=1):
    return {
        "group": group,
        "tools": tools,
        "calls": calls,
        "follows_result": True,
        "rows": [[math.log(chance), math.log(1e-9)]],
    }


ONE, TWO, NONE = {0: 0.1, 1: 0.8, 2: 0.1}, {0: 0.1, 1: 0.2, 2: 0.7}, {0: 0.9, 1: 0.1}
SURELY_ONE = {0: 0.1, 1: 0.86, 2: 0.04}
RECORDS = [
    *[record("simple_python", 1, ONE), record("simple_python", 1, SURELY_ONE)] * 10,
    *[record("multiple", 1, ONE, tools=3), record("multiple", 1, SURELY_ONE, tools=3)] * 10,
    *[record("irrelevance", 0, NONE, name=0.2)] * 20,
    *[record("parallel", 2, TWO)] * 20,
    *[after("again", 1, chance) for chance in (0.2, *[0.9] * 19)],
    *[record("turns", 1, {0: 0.5, 1: 0.5}, tools=6), record("turns", 0, NONE, tools=6, name=0.1)],
    after("turns", 0, 0.01, tools=6),
]


def test_what_divides_the_sets_is_found():
    measured = thresholds(RECORDS)
    fits, several, again = (Threshold(*measured[name]) for name in ("fits", "several", "again"))
    assert fits.of(1) > fits.of(6)  # of six tools one mostly fits
    assert math.log(0.1 / 0.8) < several.of(1) < math.log(0.7 / 0.2)
    assert again.of(1) == pytest.approx(math.log(0.9), abs=0.01)
    decided = rightly_decided(RECORDS, measured)
    assert decided == dict.fromkeys(SETS, "20 of 20") | {"again": "19 of 20", "turns": "3 of 3"}


def test_a_wrong_decision_is_counted():
    measured = thresholds(RECORDS)
    wrong = [record("irrelevance", 0, ONE), record("parallel", 3, TWO), after("turns", 1, 0.01)]
    assert rightly_decided(wrong, measured) == {
        "irrelevance": "0 of 1",
        "parallel": "0 of 1",
        "turns": "0 of 1",
    }


def test_after_the_first_call_the_others_are_wanted():
    turn = after_first_call(CASE)
    assert turn.follows_result
    assert turn.calls == 1
    (call,) = turn.messages[-2]["tool_calls"]
    assert call["function"] == {"name": "weather_get", "arguments": {"city": "Oslo"}}
    assert turn.id != turn_of(CASE).id
    assert turn_of(CASE).calls == 2
    assert not turn_of(CASE).follows_result


def test_quantiles_and_divisions():
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.25) == 2.0
    assert far_above([1.0, 3.0]) == pytest.approx(2.0 + 2.5)
    assert fewest_errors([1.0, 2.0], [3.0, 4.0]) == 2.5
    assert fewest_errors([1.0, 3.5], [3.0, 7.0]) == 5.25  # one error, as at 2, amid a wider gap
    assert fewest_errors([1.0], [1.0]) == 1.0


def test_a_measured_model_is_added_to_a_table(tmp_path):
    table = tmp_path / "new" / "tool_thresholds.json"
    entry = {"model": "m", "thresholds": thresholds(RECORDS)}
    add_to(table, "a", entry)
    add_to(table, "b", entry)
    assert json.loads(table.read_text()).keys() == {"a", "b"}
    assert read_thresholds(table.read_bytes()).keys() == {"a", "b"}
