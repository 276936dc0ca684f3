import json

import pytest

from engine.text.tool_calls.choosing import FORMS, new_parser
from engine.text.tool_calls.repeated_calls import WithoutRepeats, exhausted_call
from tests.fakes.parsed_answer import TOOLS, parts_of, pieces_of, read_parts, values_of
from tests.fakes.tool_template import tool_call

USER = {"role": "user", "content": "Weather?"}
PARIS = {"city": "Paris"}


def made(arguments, result, number, name="get_weather"):
    call = tool_call(name, arguments, f"call_{number}")
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": f"call_{number}"},
    ]


TWICE = [USER, *made(PARIS, "sunny", 1), *made(PARIS, "sunny", 2)]


def test_a_call_made_twice_with_the_same_result_is_exhausted():
    assert exhausted_call(TWICE) == ("get_weather", '{"city": "Paris"}')


def test_a_reminder_of_the_client_is_no_new_question():
    reminder = {"role": "user", "content": "<system-reminder>Be brief.</system-reminder>"}
    given = [USER, *made(PARIS, "sunny", 1), reminder, *made(PARIS, "sunny", 2), reminder]
    assert exhausted_call(given) is not None


def test_the_form_of_the_arguments_does_not_matter():
    given = [USER, *made({"a": 1, "b": 2}, "x", 1), *made('{"b":2,"a":1}', "x", 2)]
    assert exhausted_call(given) == ("get_weather", '{"a": 1, "b": 2}')


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, *made(PARIS, "sunny", 1)],
        [*TWICE, USER],
        [USER, *made(PARIS, "10 %", 1), *made(PARIS, "20 %", 2)],
        [USER, *made(PARIS, "sunny", 1), *made({"city": "Rome"}, "sunny", 2)],
        [USER, *made(PARIS, "x", 1), *made({}, "y", 2, "get_time"), *made(PARIS, "x", 3)],
        [USER, *made(PARIS, "x", 1), USER, *made(PARIS, "x", 2)],
        [*TWICE[:-1]],
    ],
    ids=["no call", "once", "new question", "other result", "other arguments", "call between",
         "question between", "no result"],
)  # fmt: skip
def test_other_conversations_allow_every_call(messages):
    assert exhausted_call(messages) is None


def call_text(name, arguments):
    return json.dumps({"name": name, "arguments": arguments})


def answer(text, size=3, **options):
    parser = new_parser(FORMS["hermes"], TOOLS, parallel=options.pop("parallel", True))
    guarded = WithoutRepeats(parser, exhausted_call(TWICE))
    return values_of(read_parts(parts_of(guarded, pieces_of(text, size), **options)))


WHY = 'The call get_weather({"city": "Paris"}) was made twice, with the same result.'


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (call_text("get_weather", PARIS), [WHY]),
        ("Hm. " + call_text("get_weather", PARIS), ["Hm."]),
        (call_text("get_weather", {"city": "Rome"}), [("get_weather", {"city": "Rome"})]),
        (call_text("get_weather", PARIS) + call_text("get_time", {}), [("get_time", {})]),
        (call_text("get_time", {}) + call_text("get_weather", PARIS), [("get_time", {})]),
        (call_text("get_weather", PARIS) * 2, [WHY]),
        ("It is sunny.", ["It is sunny."]),
    ],
)
def test_only_the_exhausted_call_is_left_out(text, expected, size):
    assert answer(text, size) == expected


def test_a_single_call_that_is_left_out_ends_the_answer():
    assert answer(call_text("get_weather", PARIS) + " More.", parallel=False) == [WHY]
