"""Tools of the type `mcp` in `POST /v1/responses`: the server calls them, the client approves."""

import asyncio
import json
import sys
from dataclasses import replace

import httpx
import openai
import pytest

from agents import Cluster
from agents.mcp.server import McpServer
from agents.mcp.servers import McpServers
from agents.plugins.registry import Registry
from agents.runs.approvals import Approvals
from agents.service.confined_service import ConfinedRunService
from agents.service.local_service import LocalRunService
from agents.tool_loop.opening import open_loop
from agents.tool_loop.values import ToolLoopRequest
from app.server.calls.responses_mcp import mcp_access, wanted_mcp
from app.server.openapi.document import ITEM_SCHEMA
from app.server.wire.errors import ApiError
from tests.server.byte_engine import wait_until
from tests.server.live import live
from tests.server.responses_api import URL, answering, kinds, parse
from tests.server.scripted_engine import INFO, ScriptedEngine, words
from tests.server.test_openapi import conforms
from tests.server.test_tool_loop import TEMPLATE, call
from tests.server.toy_tokenizer import byte_tokenizer
from tests.unit.agents.mcp.conftest import SCRIPT

MCP = {"type": "mcp", "server_label": "toy", "require_approval": "never"}
ECHO = call("toy.echo", text="hello")
FUNCTION = {"type": "function", "name": "theirs", "parameters": {"type": "object"}}


class Server:
    """A server with one approved MCP server, and a model that answers with given texts, one a round."""

    def __init__(self, running, engine, http, service):
        self.running, self.engine, self.http, self.service = running, engine, http, service

    def answer(self, *answers):
        left = iter(answers)
        self.engine.requests.clear()
        self.engine.script = lambda request: words(next(left))(request)

    def ask(self, *answers, status=200, **fields):
        self.answer(*answers)
        response = self.http.post(URL, json=body(**fields))
        assert response.status_code == status, response.text
        return response.json()

    def stream(self, *answers, **fields):
        self.answer(*answers)
        with self.http.stream("POST", URL, json=body(stream=True, **fields)) as response:
            return parse("".join(response.iter_text()))

    @property
    def prompts(self):
        return [
            bytes(i for i in one.prompt_ids if i < 256).decode() for one in self.engine.requests
        ]


def body(**fields):
    return {"model": "toy", "input": "Go on.", "tools": [MCP]} | fields


def approve(server, path):
    """Approve a server and its tools, as `pravaha mcp approve` does."""
    approvals = Approvals()

    def allow():
        for request in approvals.pending:
            approvals.decide(request.id, "once")

    async def opened():
        approvals.on_change(lambda: asyncio.get_running_loop().call_soon(allow))
        means = Cluster(
            registry=Registry(mcp=McpServers([server], path)), approvals=approvals
        ).loop_means
        wanted = ToolLoopRequest(tools=(), mcp_servers=(server.name,), mode="ask")
        await (await open_loop(wanted, means, lambda event: None)).close()

    asyncio.run(opened())


def serving(tmp_path, mode):
    engine = ScriptedEngine(words("x"))
    engine.tokenizer = byte_tokenizer(template=TEMPLATE)
    engine.info = replace(INFO, context_length=16_384)
    program = ("-S", "-E", str(SCRIPT))
    server = McpServer("toy", sys.executable, program, connect_s=60.0, call_s=60.0)
    strange = McpServer("strange", sys.executable, program, connect_s=60.0)
    remote = McpServer("remote", url="https://mcp.example.org/mcp")
    path = tmp_path / "approved.json"
    approve(server, path)
    servers = McpServers([server, strange, remote], path)
    service = LocalRunService(
        lambda: Cluster(registry=Registry(mcp=servers), approvals=Approvals(), mode=mode), roots=[]
    )
    return engine, service


@pytest.fixture(scope="module", params=["auto"])
def server(request, tmp_path_factory):
    engine, service = serving(tmp_path_factory.mktemp("mcp"), request.param)
    with (
        live(engine, run_service=ConfinedRunService(service, [])) as running,
        httpx.Client(base_url=running.url, timeout=60) as http,
    ):
        yield Server(running, engine, http, service)
    service.close()


asking = pytest.mark.parametrize("server", ["ask"], indirect=True)
"""A server whose own mode is to ask about every call."""


def test_the_tools_are_listed_and_a_call_is_made(server):
    answer = server.ask("I look." + ECHO, "It said hello.")
    listed, said, made, last = answer["output"]
    assert (listed["type"], listed["server_label"], listed["error"]) == (
        "mcp_list_tools",
        "toy",
        None,
    )
    echo = next(one for one in listed["tools"] if one["name"] == "echo")
    assert echo["input_schema"]["required"] == ["text"]
    assert said["content"][0]["text"] == "I look."
    assert (made["type"], made["server_label"], made["name"]) == ("mcp_call", "toy", "echo")
    assert (made["arguments"], made["output"], made["status"]) == (
        '{"text": "hello"}',
        "hello",
        "completed",
    )
    assert (made["error"], made["approval_request_id"]) == (None, None)
    assert last["content"][0]["text"] == "It said hello."
    assert answer["status"] == "completed"
    first, second = server.prompts
    assert "toy.echo" in first
    assert "tool\nhello" in second
    assert answer["usage"]["input_tokens"] == sum(len(r.prompt_ids) for r in server.engine.requests)


def test_answers_and_events_are_as_described(server):
    document = server.http.get("/openapi.json").json()
    contents = document["paths"]["/v1/responses"]["post"]["responses"]["200"]["content"]
    answer = contents["application/json"]["schema"]
    event = contents["text/event-stream"][ITEM_SCHEMA]
    given = server.ask(ECHO, "Done.", max_tool_calls=3)
    assert given["max_tool_calls"] == 3
    conforms(document, given, answer)
    details = document["components"]["schemas"]["ResponseInputDetails"]
    assert details["properties"].keys() == given["usage"]["input_tokens_details"].keys()
    for one in server.stream(ECHO, "Done.", max_tool_calls=3):
        conforms(document, one, event)


def test_a_stream_has_the_events_that_openai_names(server):
    events = server.stream(ECHO, "Done.")
    assert kinds(events) == [
        "created", "in_progress",
        "output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done",
        "output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta",
        "mcp_call_arguments.done", "mcp_call.completed", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    added = [one["item"] for one in events if one["type"] == "response.output_item.added"]
    done = [one["item"] for one in events if one["type"] == "response.output_item.done"]
    assert [one["id"] for one in added] == [one["id"] for one in done]
    assert (added[0]["tools"], added[1]["arguments"]) == ([], "")
    assert events[-1]["response"]["output"] == done


def test_the_official_client_reads_it(server):
    server.answer(ECHO, "Done.")
    api = openai.OpenAI(base_url=f"{server.running.url}/v1", api_key="none", max_retries=0)
    with api, api.responses.stream(model="toy", input="Go on.", tools=[MCP]) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert [one.type for one in final.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert final.output[1].output == "hello"


def test_a_failed_call_says_so_and_the_model_reads_it(server):
    (_, made, _) = server.ask(call("toy.fail"), "Sorry.")["output"]
    assert (made["status"], made["output"]) == ("failed", None)
    assert made["error"]["type"] == "mcp_tool_execution_error"
    assert made["error"]["content"][0]["text"]
    assert made["error"]["content"][0]["text"] in server.prompts[1]


def test_the_conversation_goes_on_with_its_calls(server):
    first = server.ask(ECHO, "Done.")
    second = server.ask("Fine.", previous_response_id=first["id"], input="And?")
    assert [one["type"] for one in second["output"]] == [
        "message"
    ]  # the tools are not listed again
    assert '"name": "toy.echo"' in server.prompts[0]
    assert "tool\nhello" in server.prompts[0]
    # A client that keeps the conversation itself sends the items back.
    items = [
        {"role": "user", "content": "Go on."},
        *first["output"],
        {"role": "user", "content": "And?"},
    ]
    server.ask("Fine.", input=items)
    assert "tool\nhello" in server.prompts[0]


def test_only_allowed_tools_are_offered(server):
    answer = server.ask("x", tools=[MCP | {"allowed_tools": ["echo"]}])
    assert [one["name"] for one in answer["output"][0]["tools"]] == ["echo"]
    assert "toy.slow" not in server.prompts[0]
    same = server.ask("x", tools=[MCP | {"allowed_tools": {"tool_names": ["echo"]}}])
    assert [one["name"] for one in same["output"][0]["tools"]] == ["echo"]


@pytest.mark.parametrize("approval", [{}, {"require_approval": "always"}])
def test_a_call_waits_for_the_client_by_default(server, approval):
    tool = {name: value for name, value in MCP.items() if name != "require_approval"} | approval
    first = server.ask(ECHO, tools=[tool])
    asked = first["output"][1]
    assert (asked["type"], asked["server_label"], asked["name"]) == (
        "mcp_approval_request",
        "toy",
        "echo",
    )
    assert json.loads(asked["arguments"]) == {"text": "hello"}
    assert first["status"] == "completed"
    assert len(server.engine.requests) == 1
    given = {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
    second = server.ask("Done.", previous_response_id=first["id"], input=[given], tools=[tool])
    made, said = second["output"]
    assert (made["type"], made["output"], made["approval_request_id"]) == (
        "mcp_call",
        "hello",
        asked["id"],
    )
    assert said["content"][0]["text"] == "Done."
    assert "tool\nhello" in server.prompts[0]
    # It is made once: a later request reads its result.
    third = server.ask("Fine.", previous_response_id=second["id"], input="And?", tools=[tool])
    assert [one["type"] for one in third["output"]] == ["message"]
    assert server.prompts[0].count("tool\nhello") == 1


def test_what_the_client_denies_the_model_is_told(server):
    tool = MCP | {"require_approval": "always"}
    first = server.ask(ECHO, tools=[tool])
    asked = first["output"][-1]
    denial = {
        "type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": False,
        "reason": "too loud",
    }  # fmt: skip
    items = [{"role": "user", "content": "Go on."}, asked, denial]
    answer = server.ask("Then not.", input=items, tools=[tool])
    assert [one["type"] for one in answer["output"]] == ["mcp_list_tools", "message"]
    assert "tool\nThe user did not approve this call: too loud" in server.prompts[0]


def test_calls_that_need_no_approval_are_made_before_the_client_is_asked(server):
    tool = MCP | {"require_approval": {"never": {"tool_names": ["echo"]}}}
    answer = server.ask(ECHO + call("toy.structured"), tools=[tool])
    assert [one["type"] for one in answer["output"][1:]] == ["mcp_call", "mcp_approval_request"]
    assert answer["output"][-1]["name"] == "structured"


@asking
def test_where_the_server_asks_the_client_is_asked_whatever_it_wants(server):
    events = server.stream(ECHO)
    assert "mcp_call.in_progress" not in kinds(events)
    first = events[-1]["response"]
    asked = first["output"][-1]
    assert asked["type"] == "mcp_approval_request"
    wait_until(lambda: not server.service.approvals(), seconds=60)
    given = {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
    second = server.ask("Done.", previous_response_id=first["id"], input=[given])
    assert second["output"][0]["output"] == "hello"


def test_max_tool_calls_bounds_the_calls(server):
    answer = server.ask(ECHO, ECHO, max_tool_calls=1)
    assert [one["type"] for one in answer["output"]] == ["mcp_list_tools", "mcp_call", "message"]
    assert answer["max_tool_calls"] == 1


def test_a_call_of_the_clients_own_function_ends_the_answer(server):
    answer = server.ask(call("theirs"), tools=[MCP, FUNCTION])
    assert [one["type"] for one in answer["output"]] == ["mcp_list_tools", "function_call"]


def test_a_choice_of_the_servers_tool_is_for_the_first_round(server):
    choice = {"type": "mcp", "server_label": "toy", "name": "echo"}
    server.ask(ECHO, "Done.", tool_choice=choice)
    first, second = server.engine.requests
    assert (first.sampling.grammar is not None, second.sampling.grammar) == (True, None)
    server.ask("Hi.", tool_choice="none")
    server.ask(ECHO, "Done.", tool_choice={"type": "mcp", "server_label": "toy"})
    first, second = server.engine.requests
    assert (first.sampling.grammar is not None, second.sampling.grammar) == (True, None)
    missing = {"type": "mcp", "server_label": "toy", "name": "nothing"}
    assert server.ask("x", status=400, tool_choice=missing)["error"]["param"] == "tool_choice"


def allowed(*tools, mode="auto"):
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


ECHO_TOOL = {"type": "mcp", "server_label": "toy", "name": "echo"}
THEIRS = {"type": "function", "name": "theirs"}


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        (allowed(ECHO_TOOL), {"toy.echo"}),
        (allowed(ECHO_TOOL, THEIRS), {"toy.echo", "theirs"}),
        (allowed({"type": "mcp", "server_label": "toy"}), {"toy.echo", "toy.fail"}),
        (allowed(THEIRS), {"theirs"}),
        (allowed({"type": "web_search"}), set()),
    ],
)
@pytest.mark.parametrize("call_name", ["toy.echo", "toy.fail", "theirs"])
def test_only_tools_that_are_allowed_in_this_answer_are_called(server, choice, called, call_name):
    arguments = {"text": "hello"} if call_name == "toy.echo" else {}
    written = call(call_name, **arguments)
    answer = server.ask(written, "Done.", "Done.", tools=[MCP, FUNCTION], tool_choice=choice)
    made = [one for one in answer["output"] if one["type"] in ("mcp_call", "function_call")]
    assert bool(made) == (call_name in called)


def test_a_call_of_an_allowed_tool_can_be_required(server):
    server.ask(ECHO, "Done.", tool_choice=allowed(ECHO_TOOL, mode="required"))
    first, second = server.engine.requests
    assert (first.sampling.grammar is not None, second.sampling.grammar) == (True, None)


def test_allowed_tools_alone_without_functions_can_be_none(server):
    answer = server.ask(ECHO, "Done.", tool_choice=allowed())
    assert "mcp_call" not in [one["type"] for one in answer["output"]]


def test_a_server_that_was_never_approved_is_an_error_of_its_list(server):
    events = server.stream("Hi.", tools=[MCP | {"server_label": "strange"}])
    assert "mcp_list_tools.failed" in kinds(events)
    listed = events[-1]["response"]["output"][0]
    assert (listed["tools"], events[-1]["type"]) == ([], "response.completed")
    assert "`pravaha mcp approve strange`" in listed["error"]
    wait_until(lambda: not server.service.approvals(), seconds=60)


def test_credentials_are_neither_sent_on_nor_shown_nor_kept(server):
    tool = MCP | {"authorization": "secret", "headers": {"X-Key": "secret"}}
    server.answer("Hi.")
    response = server.http.post(URL, json=body(tools=[tool]))
    assert "secret" not in response.text
    ignored = response.headers["x-pravaha-ignored-fields"]
    assert ignored == "tools[0].authorization,tools[0].headers"
    assert "secret" not in server.http.get(f"{URL}/{response.json()['id']}").text


def test_an_answer_in_the_background_calls_tools(server):
    queued = server.ask(ECHO, "Done.", background=True)
    text = server.http.get(f"{URL}/{queued['id']}", params={"stream": True}).text
    answer = parse(text)[-1]["response"]
    assert [one["type"] for one in answer["output"]] == ["mcp_list_tools", "mcp_call", "message"]


def test_a_client_that_leaves_stops_the_call(server):
    server.answer(call("toy.slow"))
    with server.http.stream("POST", URL, json=body(stream=True)) as response:
        lines = response.iter_lines()
        for line in lines:
            if "response.mcp_call.in_progress" in line:
                break
    wait_until(lambda: not server.running.context.running_turns, seconds=60)


def test_a_call_that_runs_is_incomplete_in_a_response_that_is_cancelled(server):
    server.answer(call("toy.slow"))
    with server.http.stream("POST", URL, json=body(stream=True, background=True)) as response:
        lines = response.iter_lines()
        for line in lines:
            if '"response.created"' in line:
                response_id = json.loads(line.partition("data: ")[2])["response"]["id"]
            if "response.mcp_call.in_progress" in line:
                break
        cancelled = server.http.post(f"{URL}/{response_id}/cancel").json()
    assert cancelled["status"] == "cancelled"
    made = cancelled["output"][-1]
    assert (made["type"], made["status"], made["output"]) == ("mcp_call", "incomplete", None)


def test_a_response_that_is_cancelled_while_it_writes_generates_no_more(server):
    server.engine.requests.clear()
    server.engine.aborted.clear()
    scripts = iter([words(ECHO), words("It said", finish=None)])
    server.engine.script = lambda request: next(scripts)(request)
    with server.http.stream("POST", URL, json=body(stream=True, background=True)) as response:
        lines = response.iter_lines()
        for line in lines:
            if '"response.created"' in line:
                response_id = json.loads(line.partition("data: ")[2])["response"]["id"]
            if "response.output_text.delta" in line:
                break
        cancelled = server.http.post(f"{URL}/{response_id}/cancel").json()
    assert cancelled["status"] == "cancelled"
    wait_until(lambda: not server.running.context.running_turns, seconds=60)
    assert server.engine.aborted == [server.engine.requests[1].request_id]


def test_a_server_without_agents_has_no_mcp_servers():
    with answering("ok") as http:
        error = http.post(URL, json=body()).json()["error"]
    assert (error["param"], error["code"]) == ("tools[0].server_label", "mcp_server_not_configured")


def test_the_tokens_of_its_tools_are_not_counted_and_that_is_said(server):
    response = server.http.post(f"{URL}/input_tokens", json=body())
    assert response.headers["x-pravaha-skipped-tools"] == "mcp"


@pytest.mark.parametrize(
    ("changed", "param", "said"),
    [
        ({"server_label": "other"}, "tools[0].server_label", "no MCP server 'other' here"),
        ({"server_url": "https://evil.example/mcp"}, "tools[0].server_url", "evil.example"),
        ({"server_label": None}, "tools[0].server_label", "missing"),
        ({"connector_id": "connector_gmail"}, "tools[0].connector_id", "OpenAI"),
        ({"allowed_tools": {"read_only": True}}, "tools[0].allowed_tools.read_only", "tool_names"),
        ({"allowed_tools": [1]}, "tools[0].allowed_tools", "list of names"),
        ({"require_approval": "sometimes"}, "tools[0].require_approval", "'always', 'never'"),
        ({"require_approval": {"never": 1}}, "tools[0].require_approval.never", "object"),
    ],
)
def test_what_cannot_be_is_refused_by_name(server, changed, param, said):
    error = server.ask("x", status=400, tools=[MCP | changed])["error"]
    assert error["param"] == param
    assert said in error["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [MCP, {"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"tool_choice": {"type": "mcp", "server_label": "other"}}, "tool_choice.server_label"),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "tools": [{"type": "mcp", "server_label": "other"}],
                }
            },
            "tool_choice.tools[0]",
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "tools": [{"type": "mcp", "server_label": ["toy"]}],
                }
            },
            "tool_choice.tools[0]",
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "tools": [{"type": "mcp", "server_label": "toy", "name": "nothing"}],
                }
            },
            "tool_choice",
        ),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        (
            {
                "input": [
                    {"type": "mcp_approval_response", "approval_request_id": "x", "approve": True}
                ]
            },
            "input[0].approval_request_id",
        ),
    ],
)
def test_fields_that_do_not_go_with_it_are_refused(server, fields, param):
    assert server.ask("x", status=400, **fields)["error"]["param"] == param


def test_an_approval_of_a_server_that_is_not_there_is_refused(server):
    asked = {
        "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "gone", "name": "x",
        "arguments": "{}",
    }  # fmt: skip
    given = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    items = [{"role": "user", "content": "Go on."}, asked, given]
    assert server.ask("x", status=400, input=items)["error"]["param"] == "input[2]"


def test_a_server_is_found_by_its_url():
    tool = MCP | {"server_label": "docs", "server_url": "https://mcp.example.org/mcp/"}
    access = mcp_access([wanted_mcp(tool, "tools[0]")], {"remote": "https://mcp.example.org/mcp"})
    assert access.names == {"docs": "remote"}


def test_a_server_that_is_named_twice_is_refused():
    wanted = [wanted_mcp(MCP, "tools[0]"), wanted_mcp(MCP, "tools[1]")]
    with pytest.raises(ApiError) as error:
        mcp_access(wanted, {"toy": ""})
    assert error.value.param == "tools[1]"
