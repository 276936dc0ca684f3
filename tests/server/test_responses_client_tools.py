"""OpenAI's tools that the client runs: the shells and `apply_patch` in the Responses API."""

import json

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.calls.responses_client_tools import CLIENT_TOOLS, parsed_members
from app.server.calls.responses_input import chat_input
from app.server.calls.responses_output import ResponseOutput
from app.server.calls.responses_tools import chat_tool_choice, read_tools
from engine.api.answer_parts import CallArguments, CallBegun
from tests.server.responses_api import BODY, URL, answering, kinds, stream

TOOLS = [{"type": name} for name in CLIENT_TOOLS]
ARGUMENTS = {
    "local_shell": {"command": ["ls", "-l"], "working_directory": "/tmp"},
    "shell": {"commands": ["ls", "pwd"], "timeout_ms": 500},
    "apply_patch": {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b\n"},
}


def test_each_is_offered_as_a_function_of_its_name():
    tools = read_tools([*TOOLS, {"type": "shell", "environment": {"type": "container_auto"}}])
    assert [one["function"]["name"] for one in tools.offered] == list(CLIENT_TOOLS)
    assert tools.skipped == ["shell"]  # one that runs at OpenAI's
    assert chat_tool_choice({"type": "shell"}, tools)["function"]["name"] == "shell"
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "apply_patch"}]}
    chosen = chat_tool_choice(allowed, tools)["allowed_tools"]["tools"]
    assert [one["function"]["name"] for one in chosen] == ["apply_patch"]


def called(name, arguments):
    output = ResponseOutput(read_tools(TOOLS))
    text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    parts = [CallBegun(0, "call_a", name), CallArguments(0, text[:9]), CallArguments(0, text[9:])]
    events = [*output.feed(parts), *output.finish("completed")]
    return output.items[0], events


def test_calls_come_back_in_the_tools_own_form():
    shell, _ = called("local_shell", ARGUMENTS["local_shell"])
    assert (shell["type"], shell["call_id"], shell["status"]) == (
        "local_shell_call", "call_a", "completed",
    )  # fmt: skip
    assert shell["action"] == {
        "type": "exec", "command": ["ls", "-l"], "env": {}, "timeout_ms": None, "user": None,
        "working_directory": "/tmp",
    }  # fmt: skip
    commands, events = called("shell", ARGUMENTS["shell"])
    assert commands["action"] == {
        "commands": ["ls", "pwd"],
        "timeout_ms": 500,
        "max_output_length": None,
    }
    assert commands["environment"] == {"type": "local"}
    done = [one["command"] for one in events if one["type"] == "response.shell_call_command.done"]
    assert done == ["ls", "pwd"]
    patch, _ = called("apply_patch", ARGUMENTS["apply_patch"])
    assert (patch["type"], patch["operation"]) == ("apply_patch_call", ARGUMENTS["apply_patch"])


@pytest.mark.parametrize("name", CLIENT_TOOLS)
@pytest.mark.parametrize(
    "text", ["", '{"command', "[]", '{"other": 1}', '{"command": 3}', '{"commands": []}']
)
def test_nothing_is_run_of_damaged_arguments(name, text):
    item, events = called(name, text)
    assert item["status"] == "incomplete"
    assert not (item.get("action") or {}).get("command")
    assert not (item.get("action") or {}).get("commands")
    assert kinds(events) == ["output_item.added", "output_item.done"]


def test_one_text_is_a_line_for_a_shell():
    item, _ = called("local_shell", {"command": "ls | wc"})
    assert item["action"]["command"] == ["bash", "-lc", "ls | wc"]
    assert called("shell", {"commands": "ls"})[0]["action"]["commands"] == ["ls"]


@pytest.mark.parametrize("name", CLIENT_TOOLS)
def test_a_call_that_is_sent_back_has_the_arguments_that_the_model_wrote(name):
    item, _ = called(name, ARGUMENTS[name])
    (message,) = chat_input(None, [], [item]).messages
    (call,) = message["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("call_a", name)
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS[name]


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "local_shell_call_output", "id": "call_a", "output": "a\n"}, "a\n"),
        ({"type": "local_shell_call_output", "call_id": "call_a", "output": "a"}, "a"),
        (
            {"type": "shell_call_output", "call_id": "call_a", "output": [
                {"stdout": "a\n", "stderr": "b", "outcome": {"type": "exit", "exit_code": 2}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ]},
            "a\nb\n[exit code 2]\n\n[timed out]",
        ),
        ({"type": "apply_patch_call_output", "call_id": "call_a", "status": "completed"}, "done"),
        (
            {"type": "apply_patch_call_output", "call_id": "call_a", "status": "failed", "output": "no file"},
            "failed: no file",
        ),
    ],
)  # fmt: skip
def test_results_are_read(item, text):
    (message,) = chat_input(None, [], [item]).messages
    assert message == {"role": "tool", "tool_call_id": "call_a", "content": text}


def test_the_official_client_reads_them(monkeypatch):
    table = {
        name: [CallBegun(index, f"call_{index}", name), CallArguments(index, json.dumps(arguments))]
        for index, (name, arguments) in enumerate(ARGUMENTS.items())
    }
    pieces = ["local_shell", "apply_patch"]
    with answering(*pieces, table=table, monkeypatch=monkeypatch, context=8192) as http:
        api = openai.OpenAI(base_url=f"{http.base_url}/v1", api_key="none", max_retries=0)
        with api, api.responses.stream(model="toy", input="hi", tools=TOOLS) as given:
            for _ in given:
                pass
            final = given.get_final_response()
        assert [one.type for one in final.output] == ["local_shell_call", "apply_patch_call"]
        assert final.output[0].action.command == ["ls", "-l"]
        assert final.output[1].operation.diff == "@@\n-a\n+b\n"
        events = stream(http, tools=TOOLS)
        output = events[-1]["response"]["output"]
        results = [
            {"type": "local_shell_call_output", "call_id": "call_0", "output": "a.py"},
            {"type": "apply_patch_call_output", "call_id": "call_2", "status": "completed"},
        ]
        fields = {"input": [{"role": "user", "content": "hi"}, *output, *results], "tools": TOOLS}
        assert http.post(URL, json=BODY | fields).status_code == 200


@given(
    st.sampled_from(list(CLIENT_TOOLS)),
    st.text() | st.dictionaries(st.text(), st.text()).map(json.dumps),
)
def test_any_text_of_arguments_is_read_or_is_none(kind, text):
    members = parsed_members(kind, text)
    assert members is None or set(members) <= {"action", "environment", "operation"}
