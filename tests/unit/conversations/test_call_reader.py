"""What the screen shows of an answer with calls, and the calls themselves."""

import json

import pytest

from engine.conversations.call_reader import CallReader
from engine.text.tool_calls.call_parser import CallParser
from engine.text.tool_calls.forms.hermes import HERMES
from tests.fakes.parsed_answer import TOOLS

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def reader():
    return CallReader(CallParser(HERMES, TOOLS))


def test_text_is_shown_and_calls_are_not():
    read = reader()
    shown = read.feed("I look. ") + read.feed(CALL, finished=True)
    assert shown == read.text == "I look."
    assert [(one.name, one.arguments) for one in read.calls] == [
        ("get_weather", '{"city": "Oslo"}')
    ]


@pytest.mark.parametrize("length", [60, 62, 63])
def test_a_call_that_a_limit_cuts_stays_incomplete(length):
    read = reader()
    read.feed(CALL[:length], finished=True, cut=True)
    (call,) = read.calls
    with pytest.raises(ValueError):
        json.loads(call.arguments)


@pytest.mark.parametrize("length", [60, 62, 63])
def test_one_that_the_model_ended_is_closed(length):
    read = reader()
    read.feed(CALL[:length], finished=True)
    (call,) = read.calls
    assert json.loads(call.arguments)["city"] in ("O", "Osl", "Oslo")
