"""Which tools of a Messages request the model is offered, and whether it must call one."""

import pytest

from app.server.calls.messages_tools import offered_tools
from app.server.wire.errors import ApiError
from app.server.wire.messages_schemas import CountTokensRequest

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA}
LATER = {"name": "later", "input_schema": SCHEMA, "defer_loading": True}
SEARCH = {"type": "web_search_20260318", "name": "web_search"}
ASK = {"role": "user", "content": "hi"}


def body(*tools, messages=(), **fields):
    given = {"model": "m", "messages": [ASK, *messages], "tools": list(tools)}
    return CountTokensRequest.model_validate(given | fields)


def fields(*tools, messages=(), **more):
    given = body(*tools, messages=messages, **more)
    return offered_tools(given).fields(given)


def names(*tools, messages=()):
    given = fields(*tools, messages=messages)
    return [one["function"]["name"] for one in given.get("tools", [])]


def test_a_tool_has_the_form_of_chat_completions():
    (tool,) = fields(WEATHER | {"strict": True, "type": "custom", "eager_input_streaming": True})[
        "tools"
    ]
    assert tool == {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells it.",
            "parameters": SCHEMA,
            "strict": True,
        },
    }


def test_a_tool_without_a_schema_has_no_arguments():
    (tool,) = fields({"name": "now"})["tools"]
    assert tool["function"] == {
        "name": "now",
        "description": "",
        "parameters": {"type": "object", "properties": {}},
    }


def test_examples_of_arguments_are_shown():
    (tool,) = fields(WEATHER | {"input_examples": [{"city": "Rome"}, {"city": "Oslo"}]})["tools"]
    assert tool["function"]["description"] == (
        'Tells it.\n\nExamples of arguments:\n{"city":"Rome"}\n{"city":"Oslo"}'
    )


def test_tools_of_the_api_are_skipped_and_named():
    given = body(SEARCH, WEATHER, {"type": "bash_20250124", "name": "bash"})
    offered = offered_tools(given)
    assert offered.skipped == ["web_search_20260318", "bash_20250124"]
    assert list(offered.tools) == [1]
    assert offered_tools(body(SEARCH)).fields(body(SEARCH)) == {}


class TestDeferred:
    def test_it_is_offered_once_a_result_refers_to_it(self):
        assert names(WEATHER, LATER) == ["weather"]
        found = {
            "type": "tool_result",
            "tool_use_id": "t",
            "content": [{"type": "tool_reference", "tool_name": "later"}],
        }
        assert names(WEATHER, LATER, messages=[{"role": "user", "content": [found]}]) == [
            "weather",
            "later",
        ]

    def test_system_messages_add_and_remove(self):
        def change(kind, name):
            block = {"type": kind, "tool": {"type": "tool_reference", "name": name}}
            return {"role": "system", "content": [block]}

        added, removed = change("tool_addition", "later"), change("tool_removal", "later")
        assert names(LATER, messages=[added]) == ["later"]
        assert names(LATER, messages=[added, removed]) == []
        assert names(WEATHER, LATER, messages=[change("tool_removal", "weather")]) == []
        unknown = {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "x"}}]}
        assert names(WEATHER, messages=[unknown]) == ["weather"]

    def test_it_is_offered_at_once_if_the_search_is_not_run_here(self):
        search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
        assert names(search, LATER) == ["later"]


class TestChoice:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"type": "auto"}, {"tool_choice": "auto"}),
            ({"type": "any"}, {"tool_choice": "required"}),
            ({"type": "none"}, {"tool_choice": "none"}),
            (
                {"type": "tool", "name": "weather"},
                {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
            ),
            (
                {"type": "auto", "disable_parallel_tool_use": True},
                {"tool_choice": "auto", "parallel_tool_calls": False},
            ),
            ({"type": "any", "disable_parallel_tool_use": False}, {"tool_choice": "required"}),
            (None, {}),
        ],
    )
    def test_it_is_that_of_a_chat(self, given, expected):
        found = fields(WEATHER, tool_choice=given)
        del found["tools"]
        assert found == expected

    @pytest.mark.parametrize(
        ("tools", "choice", "param"),
        [
            ([], {"type": "any"}, "tool_choice"),
            ([WEATHER], {"type": "tool"}, "tool_choice.name"),
            ([WEATHER], {"type": "tool", "name": "other"}, "tool_choice.name"),
            ([WEATHER, LATER], {"type": "tool", "name": "later"}, "tool_choice.name"),
            ([WEATHER, SEARCH], {"type": "tool", "name": "web_search"}, "tool_choice.name"),
        ],
    )
    def test_a_call_that_cannot_be_made_is_refused(self, tools, choice, param):
        with pytest.raises(ApiError) as refused:
            fields(*tools, tool_choice=choice)
        assert (refused.value.status_code, refused.value.param) == (400, param)

    def test_without_tools_there_is_nothing_to_choose(self):
        assert fields(tool_choice={"type": "auto"}) == {}
        assert fields(tool_choice={"type": "none"}) == {}
        assert fields(SEARCH, tool_choice={"type": "any"}) == {}
