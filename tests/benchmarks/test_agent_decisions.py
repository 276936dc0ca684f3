"""Turns behind the heads of agents: what a client writes around a question, and what is decided wrongly."""

import json
import math

import pytest

from benchmarks.agent_decisions import ASKED, TURNS, head_of, wrong
from benchmarks.agent_heads import first_request
from benchmarks.tool_thresholds import head_record
from engine.text.tool_calls.thresholds import CallThresholds, Threshold
from tests.traces.replay import load

PARAMETERS = {"type": "object", "properties": {}}
CHAT = {
    "messages": [{"role": "system", "content": "You code."}, {"role": "user", "content": "Hi"}],
    "tools": [
        {"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
        for name in ("read_file", "write_file", "bash")
    ],
}
MESSAGES = {
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: 7"},
        {"type": "text", "text": "You code."},
    ],
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "<a>"}, {"type": "text", "text": "Hi"}],
        },
        {"role": "system", "content": "# Environment"},
    ],
    "tools": [{"name": "Bash", "input_schema": PARAMETERS}, {"name": "Write"}],
}
ASK = {"calls": 1, "asked": "Run it."}
SHELL = {"calls": 0, "asked": "Run it.", "called": {"command": "./it"}, "result": "done"}
WRITE = {"calls": 1, "asked": "Write.", "called": {"path": "a", "content": "b"}, "result": "ok"}
THRESHOLDS = CallThresholds(Threshold(1.0), Threshold(0.0), Threshold(-0.5))


def test_the_question_takes_the_place_of_the_clients_one():
    assert head_of(CHAT).turn("1", ASK).messages == [
        {"role": "system", "content": "You code."},
        {"role": "user", "content": "Run it."},
    ]
    assert head_of(MESSAGES).turn("1", ASK).messages == [
        {"role": "system", "content": "You code."},
        {"role": "user", "content": "<a>\n\nRun it."},
        {"role": "system", "content": "# Environment"},
    ]


@pytest.mark.parametrize(
    ("body", "shell", "write"), [(CHAT, "bash", "write_file"), (MESSAGES, "Bash", "Write")]
)
def test_calls_are_those_of_the_clients_tools(body, shell, write):
    for one, name in ((SHELL, shell), (WRITE, write)):
        turn = head_of(body).turn("1", one)
        assert turn.follows_result
        (call,) = turn.messages[-2]["tool_calls"]
        assert call["function"] == {"name": name, "arguments": one["called"]}
        assert turn.messages[-1]["content"] == one["result"]


@pytest.mark.parametrize("trace", ["vibe", "claude_code"])
def test_every_turn_stands_behind_the_head_of_a_trace(trace):
    head = head_of(first_request(load(trace), ASKED)[1])
    for line in TURNS.read_text().splitlines():
        one = json.loads(line)
        turn = head.turn("1", one)
        assert one["asked"] in json.dumps(turn.messages)
        assert ASKED not in json.dumps(turn.messages)
        assert turn.follows_result == ("called" in one)


def question(no_call, name):
    digits = [math.log(no_call), math.log(1 - no_call), *[math.log(1e-6)] * 8]
    return [digits, [math.log(name)]]


def test_wrong_decisions_are_told_with_their_scores():
    head = head_of(CHAT)
    ask, result = head.turn("1", ASK), head.turn("2", SHELL)
    assert wrong(ask, question(0.05, 0.99), THRESHOLDS) is None
    assert "0 calls for 1" in wrong(ask, question(0.9, 0.1), THRESHOLDS)
    assert wrong(result, [[math.log(0.2)]], THRESHOLDS) is None
    assert "1 calls for 0" in wrong(result, [[math.log(0.9)]], THRESHOLDS)


def test_turns_behind_heads_set_the_slope_of_thresholds():
    kept = {"calls": 1, "rows": question(0.1, 0.9), "problem": None}
    assert head_record(kept, 10) == {
        "group": "turns",
        "tools": 10,
        "calls": 1,
        "follows_result": False,
        "rows": kept["rows"],
    }
