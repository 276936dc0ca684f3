"""`tool_loop` of chat completions: the server calls tools between the rounds of an answer."""

import asyncio
import json
import signal
import threading
from contextlib import contextmanager
from dataclasses import replace

import httpx
import openai
import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.plugins.registry import Registry, load_registry
from agents.runs.approvals import Approvals
from agents.service.confined_service import ConfinedRunService
from agents.service.local_service import LocalRunService
from agents.tool_loop.values import ToolLoopRequest
from agents.tools.tool import Effect, Tool, ToolOutput
from app.server.calls import loop_turn
from app.server.wire.tool_schemas import ToolBody
from engine.api.request import FinishReason
from engine.grammar.call_plan import NO_WORDS, WORDS
from engine.text.tool_calls.decision import NO_CALL, NO_FURTHER_CALL
from tests.server.byte_engine import wait_until
from tests.server.live import live, post_and_stay
from tests.server.scripted_engine import INFO, ScriptedEngine, words
from tests.server.toy_tokenizer import byte_tokenizer

TEMPLATE = (
    "{% if tools %}<tools>{% for t in tools %}{{ t.function.name }} {% endfor %}</tools> calls as <tool_call>"
    "{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CLIENT_TOOL = {"type": "function", "function": {"name": "theirs", "parameters": {"type": "object"}}}


class Word(BaseModel):
    word: str


class Nothing(BaseModel):
    pass


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


class Tools:
    """The tools of the server, and what was called."""

    def __init__(self):
        self.called = []
        self.began = threading.Event()
        self.stopped = threading.Event()
        read, write = frozenset({Effect.READ}), frozenset({Effect.WRITE})
        self.registry = Registry(
            tools={
                "echo": Tool("echo", "Says it.", Word, read, self.echo),
                "press": Tool("press", "Presses.", Nothing, write, self.press),
                "wait": Tool("wait", "Waits.", Nothing, read, self.wait),
                "long": Tool("long", "Long.", Nothing, read, self.long),
            }
        )

    async def echo(self, arguments, context):
        self.called.append(arguments.word)
        return ToolOutput(arguments.word.upper())

    async def press(self, arguments, context):
        self.called.append("press")
        return ToolOutput("pressed")

    async def long(self, arguments, context):
        return ToolOutput("x" * 16_000)

    async def wait(self, arguments, context):
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


class Server:
    def __init__(self, running, engine, tools, http):
        self.running, self.engine, self.tools, self.http = running, engine, tools, http

    def ask(self, *answers, loop=None, **fields):
        """The whole answer, if the model answers with these texts, one a round."""
        return self.post(*answers, loop=loop, **fields).json()

    def post(self, *answers, loop=None, **fields):
        self.answer(*answers)
        return self.http.post("/v1/chat/completions", json=body(loop, **fields))

    def answer(self, *answers):
        left = iter(answers)
        self.engine.requests.clear()
        self.engine.script = lambda request: words(next(left))(request)

    def stream(self, *answers, loop=None, **fields):
        """The chunks of a streamed answer."""
        self.answer(*answers)
        given = body(loop, stream=True, **fields)
        with self.http.stream("POST", "/v1/chat/completions", json=given) as response:
            return [
                json.loads(line[6:])
                for line in response.iter_lines()
                if line.startswith("data: ") and line != "data: [DONE]"
            ]

    def prompts(self):
        return [
            bytes(i for i in one.prompt_ids if i < 256).decode() for one in self.engine.requests
        ]

    @property
    def is_quiet(self):
        gauges = self.running.context
        return not gauges.running_turns and not self.http.get("/v1/agents/approvals").json()["data"]


def body(loop, **fields):
    messages = [{"role": "user", "content": "Go on."}]
    return {"model": "toy", "messages": messages, "tool_loop": loop or {}, **fields}


@contextmanager
def serving(root):
    engine = ScriptedEngine(words("x"))
    engine.tokenizer = byte_tokenizer(template=TEMPLATE)
    engine.info = replace(INFO, context_length=8192)
    tools = Tools()
    service = LocalRunService(
        lambda: Cluster(registry=tools.registry, approvals=Approvals(), mode="auto"),
        roots=[root],
    )
    with (
        live(engine, run_service=service) as running,
        httpx.Client(base_url=running.url, timeout=60) as http,
    ):
        yield Server(running, engine, tools, http)
    service.close()


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("root")) as server:
        yield server


@pytest.fixture
def server(opened):
    opened.tools.called.clear()
    opened.tools.began.clear()
    opened.tools.stopped.clear()
    yield opened
    wait_until(lambda: opened.is_quiet, seconds=60)


def test_a_tool_is_called_and_its_result_is_read(server):
    answer = server.ask("I look." + call("echo", word="hi"), "It said HI.")
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "I look.\n\nIt said HI."
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "stop"
    loop = choice["tool_loop"]
    assert loop["rounds"] == 1
    (made,) = loop["calls"]
    assert (made["name"], made["arguments"], made["state"]) == ("echo", '{"word": "hi"}', "ok")
    asked, result = loop["messages"]
    assert asked["tool_calls"][0]["id"] == result["tool_call_id"] == made["id"]
    assert (asked["content"], result["content"]) == ("I look.", "HI")
    first, second = server.prompts()
    assert "echo" in first
    assert "<tool_call>" in second
    assert "tool\nHI" in second
    assert answer["usage"]["prompt_tokens"] == sum(
        len(r.prompt_ids) for r in server.engine.requests
    )
    assert answer["usage"]["completion_tokens"] > len("It said HI.")


def test_all_rounds_are_of_one_session(server):
    server.answer(call("echo", word="hi"), "It said HI.")
    headers = {"x-client-request-id": "once"}
    server.http.post("/v1/chat/completions", json=body(None), headers=headers)
    first, second = (one.session for one in server.engine.requests)
    assert first == second != "once"


def test_its_messages_can_be_sent_back(server):
    loop = server.ask(call("echo", word="hi"), "Yes.")["choices"][0]["tool_loop"]
    messages = [*body(None)["messages"], *loop["messages"], {"role": "user", "content": "And?"}]
    assert server.post("Fine.", messages=messages).status_code == 200


def test_a_stream_has_the_events_beside_the_text(server):
    chunks = server.stream(
        "I look." + call("echo", word="hi"), "It said HI.", stream_options={"include_usage": True}
    )
    choices = [one["choices"][0] for one in chunks if one["choices"]]
    events = [one["tool_loop"] for one in choices if "tool_loop" in one]
    assert [one.get("type") for one in events] == ["call_started", "call_finished", None]
    assert all(one["delta"] == {} for one in choices if "tool_loop" in one)
    assert (events[1]["state"], events[1]["result"]) == ("ok", "HI")
    assert events[2]["rounds"] == 1
    text = "".join(one["delta"].get("content") or "" for one in choices)
    assert text == "I look.\n\nIt said HI."
    assert not any("tool_calls" in one["delta"] for one in choices)
    assert len({one["id"] for one in chunks}) == 1
    assert [one["finish_reason"] for one in choices if one["finish_reason"]] == ["stop"]
    assert chunks[-1]["usage"]["completion_tokens"] > len("It said HI.")


def test_the_client_library_reads_it(server):
    server.answer(call("echo", word="hi"), "HI!")
    client = openai.OpenAI(base_url=f"{server.running.url}/v1", api_key="none", max_retries=0)
    stream = client.chat.completions.create(
        model="toy", messages=body(None)["messages"], stream=True, extra_body={"tool_loop": {}}
    )
    text, kinds = "", []
    for chunk in stream:
        (choice,) = chunk.choices
        text += choice.delta.content or ""
        event = (choice.model_extra or {}).get("tool_loop")
        kinds += [event["type"]] if event and "type" in event else []
    assert (text, kinds) == ("HI!", ["call_started", "call_finished"])
    client.close()


def test_the_last_round_is_followed_by_an_answer_without_calls(server):
    answer = server.ask(
        call("echo", word="a"), call("echo", word="b"), "Enough.", loop={"max_rounds": 2}
    )
    assert server.tools.called == ["a", "b"]
    assert answer["choices"][0]["message"]["content"] == "Enough."
    assert "echo" in server.prompts()[2]  # the tools stay in the prompt, whose beginning is cached
    assert [NO_FURTHER_CALL in one for one in server.prompts()] == [False, False, True]
    grammars = [one.sampling.grammar for one in server.engine.requests]
    assert grammars == [None, None, WORDS]


def test_an_equal_call_has_its_former_result_and_is_followed_by_words(server):
    again = call("echo", word="a")
    answer = server.ask(again, again, "It said A.")
    (choice,) = answer["choices"]
    assert server.tools.called == ["a"]
    assert choice["message"]["content"] == "It said A."
    results = [one["content"] for one in choice["tool_loop"]["messages"] if one["role"] == "tool"]
    assert results == ["A", "A"]
    assert NO_FURTHER_CALL in server.prompts()[2]


def test_an_empty_answer_is_followed_by_words(server):
    answer = server.ask(call("echo", word="a"), "", "It said A.")
    (choice,) = answer["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("It said A.", "stop")
    assert NO_FURTHER_CALL in server.prompts()[2]
    assert choice["tool_loop"]["rounds"] == 1


def test_an_empty_first_answer_is_followed_by_words(server):
    answer = server.ask("", "Hello.", request_id="mine")
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "Hello."
    assert NO_CALL in server.prompts()[1]
    first, second = [one.request_id for one in server.engine.requests]
    assert first == "mine" != second


def test_a_choice_of_no_tool_is_for_all_rounds(server):
    (choice,) = server.ask("", call("echo", word="a"), tool_choice="none")["choices"]
    assert server.tools.called == []
    assert choice["tool_loop"]["rounds"] == 0


def test_the_allowed_tools_are_those_of_all_rounds(server):
    functions = [{"type": "function", "function": {"name": "theirs"}}]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": functions}}
    server.ask("", call("echo", word="a"), tools=[CLIENT_TOOL], tool_choice=allowed)
    assert server.tools.called == []


def test_a_call_that_was_asked_for_is_made_once(server):
    echo = call("echo", word="a")
    given = echo.removeprefix("<tool_call>")  # which the prompt has
    answer = server.ask(given, "It said A.", tool_choice="required")
    assert answer["choices"][0]["message"]["content"] == "It said A."
    assert server.engine.requests[1].sampling.grammar is None


def test_an_answer_that_is_cut_is_not_asked_for_again(server):
    server.answer("")
    server.engine.script = words("", finish=FinishReason.LENGTH)
    answer = server.http.post("/v1/chat/completions", json=body(None)).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert len(server.engine.requests) == 1


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_limit_of_tokens_is_that_of_all_rounds(server, field):
    echo = call("echo", word="a")  # the toy's tokens are bytes
    server.ask(echo, "", "It said A.", **{field: len(echo) + 20})
    limits = [one.sampling.max_tokens for one in server.engine.requests]
    assert limits == [len(echo) + 20, 20, 20]
    (choice,) = server.ask(echo, **{field: len(echo)})["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "")
    assert choice["tool_loop"]["rounds"] == 1
    server.ask(echo, "It said A.", **{field: -1})
    first, second = [one.sampling.max_tokens for one in server.engine.requests]
    assert first == second


def test_the_client_may_call_its_own_tool_after_the_last_round(server):
    answer = server.ask(
        call("echo", word="a"), call("theirs"), tools=[CLIENT_TOOL], loop={"max_rounds": 1}
    )
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert len(server.engine.requests) == 2


def test_a_grammar_of_the_request_stays_that_of_the_last_answer(server):
    grammar = {"guided_regex": "[a-z]+"}
    server.ask(call("echo", word="a"), "enough", loop={"max_rounds": 1}, **grammar)
    assert [one.sampling.grammar.source for one in server.engine.requests] == ["[a-z]+"] * 2


def test_the_tools_are_read_once(server, monkeypatch):
    read = []
    monkeypatch.setattr(
        loop_turn.ToolBody, "model_validate", lambda value: read.append(1) or ToolBody(**value)
    )
    server.ask(call("echo", word="a"), call("echo", word="b"), "Enough.", loop={"tools": ["echo"]})
    assert len(read) == 1


def test_a_result_takes_a_part_of_the_context(server):
    answer = server.ask(call("long"), "Long.")
    (result,) = answer["choices"][0]["tool_loop"]["messages"][1:]
    assert len(result["content"]) < 8192 // 8 + 50
    assert "tokens …" in result["content"]


def test_a_failed_call_is_a_result(server):
    answer = server.ask(call("echo"), "Sorry.")
    (made,) = answer["choices"][0]["tool_loop"]["calls"]
    assert made["state"] == "failed"
    assert answer["choices"][0]["message"]["content"] == "Sorry."


def test_a_call_of_the_client_ends_the_answer(server):
    answer = server.ask(call("echo", word="a"), "Now." + call("theirs"), tools=[CLIENT_TOOL])
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert [one["function"]["name"] for one in choice["message"]["tool_calls"]] == ["theirs"]
    assert server.tools.called == ["a"]


def test_a_write_waits_for_its_approval_over_http(server):
    def decide():
        wait_until(lambda: server.http.get("/v1/agents/approvals").json()["data"], seconds=60)
        (one,) = server.http.get("/v1/agents/approvals").json()["data"]
        server.http.post(f"/v1/agents/approvals/{one['id']}", json={"decision": "once"})

    person = threading.Thread(target=decide)
    person.start()
    chunks = server.stream(call("press"), "Done.", loop={"tools": ["press"], "mode": "ask"})
    person.join()
    events = [one["choices"][0].get("tool_loop") for one in chunks]
    kinds = [one["type"] for one in events if one and "type" in one]
    assert kinds == ["call_started", "approval_requested", "approval_resolved", "call_finished"]
    (asked,) = [one for one in events if one and one.get("type") == "approval_requested"]
    assert asked["approval"].startswith("approval-")
    assert server.tools.called == ["press"]


def test_a_server_that_shuts_down_finishes_the_whole_answer(tmp_path):
    with serving(tmp_path) as server:
        server.answer(call("press"), "Done.")
        given = body({"tools": ["press"], "mode": "ask"}, stream=True)
        with server.http.stream("POST", "/v1/chat/completions", json=given) as response:
            lines = response.iter_lines()
            asked = next(line for line in lines if "approval_requested" in line)
            event = json.loads(asked[6:])["choices"][0]["tool_loop"]
            server.running.server.handle_exit(signal.SIGTERM, None)  # while the tool waits
            wait_until(lambda: server.running.context.drain.draining, seconds=60)
            decided = {"decision": "once"}
            server.http.post(f"/v1/agents/approvals/{event['approval']}", json=decided)
            rest = list(lines)
        assert any("Done." in line for line in rest)
        assert rest[-2:] == ["data: [DONE]", ""]
        wait_until(lambda: not server.running.context.drain.active, seconds=60)


def test_a_server_that_shuts_down_begins_no_answer_with_tools(tmp_path):
    with serving(tmp_path) as server:
        server.running.context.drain.begin()
        answer = server.post("x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_tool(server, stream):
    server.answer(call("wait"), "never")
    given = body({"tools": ["wait"]}, stream=stream)
    if stream:
        with server.http.stream("POST", "/v1/chat/completions", json=given) as response:
            lines = response.iter_lines()  # kept: a dropped iterator disconnects
            for line in lines:
                if "call_started" in line:
                    break
            assert server.tools.began.wait(30)
    else:
        with post_and_stay(server.running.url, "/v1/chat/completions", given):
            assert server.tools.began.wait(30)
    assert server.tools.stopped.wait(30)


def test_a_client_that_leaves_withdraws_its_approval(server):
    server.answer(call("press"), "never")
    given = body({"tools": ["press"], "mode": "ask"}, stream=True)
    with server.http.stream("POST", "/v1/chat/completions", json=given) as response:
        for line in response.iter_lines():
            if "approval_requested" in line:
                break
    wait_until(lambda: server.is_quiet, seconds=60)
    assert server.tools.called == []


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"loop": {"tools": ["ecco"]}}, "tool_loop", "did you mean echo?"),
        ({"loop": {"tools": ["press"]}}, "tool_loop", "press has side effects"),
        ({"loop": {"tools": []}}, "tool_loop", "nothing to call"),
        ({"loop": {"mcp_servers": ["x"], "mode": "ask"}}, "tool_loop", "no MCP server 'x'"),
        ({"loop": {"max_rounds": 0}}, "tool_loop.max_rounds", "greater than or equal to 1"),
        ({"loop": {"max_rounds": 65}}, "tool_loop.max_rounds", "less than or equal to 64"),
        ({"loop": {"mode": "yes"}}, "tool_loop.mode", "'auto', 'ask' or 'deny'"),
        ({"loop": {"tool": ["echo"]}}, "tool_loop.tool", "no field"),
        ({"n": 2}, "n", "must be 1"),
        ({"logprobs": True}, "logprobs", "not possible"),
        (
            {"tools": [{"type": "function", "function": {"name": "echo"}}]},
            "tools",
            "rename yours",
        ),
    ],
)
def test_what_cannot_be_is_refused(server, fields, param, said):
    answer = server.post("x", **fields)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param
    assert said in error["message"]


def test_a_server_without_agents_has_no_tools(server):
    engine = ScriptedEngine(words("x"))
    with live(engine) as running:
        answer = httpx.post(f"{running.url}/v1/chat/completions", json=body({}))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tool_loop")


def test_a_confined_service_has_its_own_folder(tmp_path):
    local = LocalRunService(lambda: Cluster(registry=load_registry()))
    confined = ConfinedRunService(local, [])
    try:
        assert "read" in confined.tool_choices("deny", tmp_path).refused
        assert (
            "read" not in ConfinedRunService(local, [tmp_path]).tool_choices("deny", None).refused
        )
        session = ConfinedRunService(local, [tmp_path]).open_tools(
            ToolLoopRequest(tools=("read",)), lambda event: None
        )
        assert [one.name for one in session.offered().result()] == ["read"]
        session.close()
    finally:
        local.close()


def test_a_call_where_words_were_asked_for_is_not_shown(server):
    answer = server.ask(call("echo", word="a"), call("echo", word="b"), loop={"max_rounds": 1})
    (choice,) = answer["choices"]
    assert server.tools.called == ["a"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == NO_WORDS
    assert "tool_calls" not in choice["message"]
