"""Tools of the Responses API as functions, and their calls in the form of the client's tools."""

import pytest

from app.server.calls.responses_output import ResponseOutput
from app.server.calls.responses_tools import chat_tool_choice, read_tools
from app.server.wire.errors import ApiError
from engine.api.answer_parts import CallArguments, CallBegun
from tests.server.responses_api import BODY, URL, answering

FUNCTION = {
    "type": "function", "name": "weather", "description": "Of a city.", "strict": True,
    "parameters": {"type": "object"},
}  # fmt: skip
SPACE = {
    "type": "namespace",
    "name": "agents",
    "description": "Others.",
    "tools": [
        {"type": "function", "name": "spawn", "parameters": {}},
        {"type": "custom", "name": "say"},
        {"type": "web_search"},
    ],
}
CUSTOM = {"type": "custom", "name": "patch", "description": "Changes files."}


def function(name, **members):
    return {"type": "function", "function": {"name": name, **members}}


def custom_function(name, **members):
    given = {"type": "string"} | members.pop("input", {})
    parameters = {
        "type": "object", "properties": {"input": given}, "required": ["input"],
        "additionalProperties": False,
    }  # fmt: skip
    return function(name, parameters=parameters, **members)


def test_every_tool_is_offered_as_a_function():
    tools = read_tools([FUNCTION, SPACE, CUSTOM])
    assert tools.offered == [
        function("weather", description="Of a city.", parameters={"type": "object"}, strict=True),
        function("agents__spawn", parameters={}),
        custom_function("agents__say"),
        custom_function("patch", description="Changes files."),
    ]
    assert tools.skipped == ["web_search"]


def test_the_nested_form_of_chat_completions_is_read_too():
    assert read_tools([function("f", parameters={})]).offered == [function("f", parameters={})]


@pytest.mark.parametrize(
    ("syntax", "definition", "pattern"),
    [("regex", "a+", "^(?:a+)$"), ("lark", 'start: "a"+', "^(?:(?:(?:a))+)$")],
)
def test_the_grammar_of_a_custom_tool_constrains_its_input(syntax, definition, pattern):
    form = {"type": "grammar", "syntax": syntax, "definition": definition}
    tools = read_tools([CUSTOM | {"format": form}])
    assert tools.offered == [
        custom_function("patch", description="Changes files.", input={"pattern": pattern})
    ]
    assert tools.not_enforced == []


@pytest.mark.parametrize("definition", ['start: "(" start ")" | "a"', 'start: "a"\n%ignore " "'])
def test_a_grammar_that_is_not_regular_is_not_enforced_and_named(definition):
    form = {"type": "grammar", "syntax": "lark", "definition": definition}
    with answering("ok", context=4096) as http:
        response = http.post(URL, json=BODY | {"tools": [CUSTOM | {"format": form}]})
    assert response.status_code == 200
    assert response.headers["x-pravaha-not-enforced"] == "patch:grammar"


def test_a_grammar_that_is_none_is_refused_by_its_path():
    form = {"type": "grammar", "syntax": "lark", "definition": "start: ("}
    with pytest.raises(ApiError) as error:
        read_tools([FUNCTION, CUSTOM | {"format": form}])
    assert error.value.param == "tools[1].format.definition"


def test_calls_come_back_in_the_form_of_the_clients_tools():
    output = ResponseOutput(read_tools([FUNCTION, SPACE, CUSTOM]))
    parts = [
        CallBegun(0, "a", "weather"), CallArguments(0, "{}"),
        CallBegun(1, "b", "agents__spawn"), CallArguments(1, "{}"),
        CallBegun(2, "c", "agents__say"), CallArguments(2, '{"input": "hi"}'),
        CallBegun(3, "d", "patch"), CallArguments(3, '{"text": "in another member"}'),
        CallBegun(4, "e", "patch"), CallArguments(4, "not JSON"),
    ]  # fmt: skip
    events = [*output.feed(parts), *output.finish("completed")]
    names = [(one["type"], one.get("namespace"), one["name"]) for one in output.items]
    assert names == [
        ("function_call", None, "weather"),
        ("function_call", "agents", "spawn"),
        ("custom_tool_call", "agents", "say"),
        ("custom_tool_call", None, "patch"),
        ("custom_tool_call", None, "patch"),
    ]
    assert [one.get("input") for one in output.items[2:]] == ["hi", "in another member", "not JSON"]
    for index, item in enumerate(output.items[2:], start=2):
        deltas = [e["delta"] for e in events if e.get("output_index") == index and "delta" in e]
        assert "".join(deltas) == item["input"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        ("auto", "auto"),
        ("required", "required"),
        ({"type": "function", "name": "weather"}, function("weather")),
        ({"type": "function", "function": {"name": "weather"}}, function("weather")),
        ({"type": "custom", "name": "patch"}, function("patch")),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, function("agents__spawn")),
        ({"type": "web_search"}, "auto"),
        (
            {"type": "allowed_tools", "mode": "required",
             "tools": [{"type": "function", "name": "weather"}, {"type": "image_generation"}]},
            {"type": "allowed_tools",
             "allowed_tools": {"mode": "required", "tools": [function("weather")]}},
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, "none"),
    ],
)  # fmt: skip
def test_choices_are_those_of_chat_completions(choice, expected):
    assert chat_tool_choice(choice, read_tools([FUNCTION, SPACE, CUSTOM])) == expected


def test_a_choice_among_no_tools_says_nothing():
    assert chat_tool_choice("required", read_tools([{"type": "web_search"}])) is None


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "custom"},
        {"type": "function", "name": ""},
        {"type": "namespace", "tools": []},
        {"type": "function", "name": "f", "parameters": []},
        {"type": ["function"]},
    ],
)
def test_a_tool_without_what_it_needs_is_refused(tool):
    with pytest.raises(ApiError) as error:
        read_tools([tool])
    assert error.value.param.startswith("tools[0].")
