"""The blocks of answers with reasoning, text and calls, whole and streamed."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.calls.chat_choice import AnsweredChoice, ChoiceEnd, TurnPiece
from app.server.calls.messages_answer import MessagesAnswer
from app.server.calls.messages_blocks import content_blocks
from app.server.calls.thinking_signature import omitted_text
from app.server.wire.messages_schemas import MessagesRequest
from engine.api.answer_parts import AnswerReasoning, AnswerText, CallArguments, CallBegun
from tests.server.messages_client import ASK, accumulated, events_of

TOOL_ANSWER = [
    AnswerReasoning("Hm, "),
    AnswerReasoning("the weather."),
    AnswerText("Let me "),
    AnswerText("see."),
    CallBegun(0, "call_1", "weather"),
    CallArguments(0, '{"city": "R'),
    CallArguments(0, 'ome"}'),
    CallBegun(1, "call_2", "now"),
]


DIRECT = {"type": "direct"}


def text(value):
    return {"type": "text", "text": value, "citations": None}


def call(id_, name):
    """A call without arguments."""
    return {"type": "tool_use", "id": id_, "name": name, "input": {}, "caller": DIRECT}


def answer(**fields):
    """An answer over a turn whose parts the test makes."""
    counts = {
        "prompt_tokens": 40,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 32},
    }
    model = SimpleNamespace(info=SimpleNamespace(name="toy"))
    turn = SimpleNamespace(model=model, usage=SimpleNamespace(counts=lambda: counts))
    return turn, MessagesAnswer(turn, MessagesRequest.model_validate(ASK | fields))


def test_what_was_cached_is_never_more_than_the_prompt():
    """A call that is forced is generated from the prompt and its opening, which may be cached, too."""
    turn, formatted = answer()
    counts = turn.usage.counts() | {"prompt_tokens_details": {"cached_tokens": 48}}
    turn.usage.counts = lambda: counts
    usage = formatted.response_body(AnsweredChoice([], ChoiceEnd("stop")))["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (0, 40)


async def streamed(parts, *, reason="stop", **fields):
    turn, formatted = answer(**fields)

    async def pieces():
        for part in parts:
            yield TurnPiece(0, [part])
        yield TurnPiece(0, [], end=ChoiceEnd(reason))

    turn.pieces = pieces
    return events_of(b"".join([one async for one in formatted.events()]).decode())


def whole(parts, *, reason="stop", **fields):
    _, formatted = answer(**fields)
    message = formatted.response_body(AnsweredChoice(parts, ChoiceEnd(reason)))
    json.dumps(message)
    return message


def test_reasoning_text_and_calls_are_blocks():
    thinking, said, weather, now = whole(TOOL_ANSWER, reason="tool_calls")["content"]
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "Hm, the weather.")
    assert thinking["signature"]
    assert said == text("Let me see.")
    assert weather == {
        "type": "tool_use",
        "id": "call_1",
        "name": "weather",
        "input": {"city": "Rome"},
        "caller": DIRECT,
    }
    assert now == call("call_2", "now")


async def test_a_stream_opens_and_closes_each_block_in_turn():
    events = await streamed(TOOL_ANSWER, reason="tool_calls")
    shape = [
        (one["type"], one["index"], one.get("delta", {}).get("type"))
        for one in events
        if one["type"].startswith("content_block")
    ]
    start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
    assert shape == [
        (start, 0, None),
        (delta, 0, "thinking_delta"),
        (delta, 0, "thinking_delta"),
        (delta, 0, "signature_delta"),
        (stop, 0, None),
        (start, 1, None),
        (delta, 1, "text_delta"),
        (delta, 1, "text_delta"),
        (stop, 1, None),
        (start, 2, None),
        (delta, 2, "input_json_delta"),
        (delta, 2, "input_json_delta"),
        (stop, 2, None),
        (start, 3, None),
        (stop, 3, None),
    ]
    blocks = [one["content_block"] for one in events if one["type"] == start]
    assert blocks == [
        {"type": "thinking", "thinking": "", "signature": ""},
        text(""),
        call("call_1", "weather"),
        call("call_2", "now"),
    ]
    *_, delta, stop = events
    assert delta["delta"] == {
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "stop_details": None,
    }
    assert delta["usage"]["output_tokens"] == 7
    assert stop == {"type": "message_stop"}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "end_turn"),
        ("tool_calls", "tool_use"),
        ("content_filter", "refusal"),
        ("length", "model_context_window_exceeded"),
    ],
)
async def test_how_it_ended(reason, expected):
    assert whole([AnswerText("a")], reason=reason)["stop_reason"] == expected
    events = await streamed([AnswerText("a")], reason=reason)
    assert events[-2]["delta"]["stop_reason"] == expected
    assert whole([AnswerText("a")], reason="length", max_tokens=7)["stop_reason"] == "max_tokens"


async def test_reasoning_that_is_not_to_be_shown_is_in_its_signature():
    fields = {"thinking": {"type": "adaptive", "display": "omitted"}}
    for message in (
        whole(TOOL_ANSWER, **fields),
        accumulated(await streamed(TOOL_ANSWER, **fields)),
    ):
        thinking = message["content"][0]
        assert thinking["thinking"] == ""
        assert omitted_text(thinking["signature"]) == "Hm, the weather."
    shown = whole(TOOL_ANSWER, thinking={"type": "adaptive", "display": "summarized"})
    assert omitted_text(shown["content"][0]["signature"]) == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (['{"a": 1}'], {"a": 1}),
        ([], {}),
        ([""], {}),
        (['{"a": "cut'], {"INVALID_JSON": '{"a": "cut'}),
        (["[1]"], {"INVALID_JSON": "[1]"}),
    ],
)
def test_arguments_are_an_object(arguments, expected):
    parts = [CallBegun(0, "c", "f"), *(CallArguments(0, one) for one in arguments)]
    (block,) = content_blocks(parts)
    assert block["input"] == expected


def calls(index):
    begun = CallBegun(index, f"c{index}", "f")
    return st.sampled_from(
        [[begun], [begun, CallArguments(index, '{"a": '), CallArguments(index, "1}")]]
    )


PARTS = st.one_of(
    st.text(min_size=1, max_size=3).map(lambda one: [AnswerText(one)]),
    st.text(min_size=1, max_size=3).map(lambda one: [AnswerReasoning(one)]),
    st.integers(0, 3).flatmap(calls),
)


@given(st.lists(PARTS, max_size=8), st.booleans())
async def test_a_stream_adds_up_to_the_whole_answer(groups, omitted):
    parts = [part for group in groups for part in group]
    fields = {"thinking": {"type": "enabled", "display": "omitted"}} if omitted else {}
    events = await streamed(parts, **fields)
    assert accumulated(events)["content"] == whole(parts, **fields)["content"]
    opened = [one["index"] for one in events if one["type"] == "content_block_start"]
    closed = [one["index"] for one in events if one["type"] == "content_block_stop"]
    assert opened == closed == list(range(len(opened)))
