"""Equal calls in an answer of several calls."""

import json

import pytest

from engine.api.answer_parts import AnswerText, CallArguments, CallBegun
from engine.api.tools import Tool
from engine.text.tool_calls.call_parser import CallParser
from engine.text.tool_calls.equal_calls import WithoutEqualCalls
from engine.text.tool_calls.forms.hermes import HERMES

TOOLS = {name: Tool(name) for name in ("get_weather", "get_time")}


def tagged(name, **arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>\n"


OSLO, ROME = tagged("get_weather", city="Oslo", unit="C"), tagged("get_weather", city="Rome")
SAME = tagged("get_weather", unit="C", city="Oslo")


def read(text, size=1000):
    parser = WithoutEqualCalls(CallParser(HERMES, TOOLS))
    parts = []
    for start in range(0, len(text), size):
        parts += parser.feed(text[start : start + size])
    parts += parser.finish()
    calls = {}
    for part in parts:
        if isinstance(part, CallBegun):
            assert part.index == len(calls)
            calls[part.index] = [part.name, ""]
        elif isinstance(part, CallArguments):
            calls[part.index][1] += part.text
    texts = "".join(part.text for part in parts if isinstance(part, AnswerText))
    return [(name, json.loads(text)) for name, text in calls.values()], texts


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_call_is_made_once(size):
    oslo = ("get_weather", {"city": "Oslo", "unit": "C"})
    rome = ("get_weather", {"city": "Rome"})
    assert read(OSLO + SAME, size) == ([oslo], "")
    assert read(OSLO + ROME + SAME + ROME, size) == ([oslo, rome], "")
    assert read(OSLO + SAME + ROME, size) == ([oslo, rome], "")


def test_other_tools_and_text_are_passed_on():
    time = tagged("get_time", city="Oslo", unit="C")
    calls, text = read("Both: " + OSLO + time + SAME)
    assert [name for name, _ in calls] == ["get_weather", "get_time"]
    assert text == "Both:"


def test_the_first_call_is_passed_on_as_it_arrives():
    parser = WithoutEqualCalls(CallParser(HERMES, TOOLS))
    parts = parser.feed(OSLO[:60])
    assert any(isinstance(part, CallArguments) for part in parts)


class Single(CallParser):
    """A parser whose answer ends with its second call."""

    @property
    def ended(self):
        return self._sink.count >= 2 and not self._sink.is_open

    @ended.setter
    def ended(self, value):
        pass


def test_the_last_call_is_passed_on_when_the_parser_has_ended():
    parser = WithoutEqualCalls(Single(HERMES, TOOLS))
    parts = list(parser.feed(OSLO + ROME))
    assert parser.ended
    names = [part.name for part in parts if isinstance(part, CallBegun)]
    assert names == ["get_weather", "get_weather"]
    assert list(parser.finish()) == []
