"""`/v1/agents/tools`, as an attached screen uses it: over `HttpRunService`."""

import asyncio
import threading
from concurrent.futures import CancelledError

import httpx
import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.api.errors import AgentError, InvalidTask
from agents.plugins.registry import Registry, load_registry
from agents.runs.approvals import Approvals
from agents.service.http_service import HttpRunService
from agents.service.local_service import LocalRunService
from agents.tool_loop.values import ToolLoopRequest
from agents.tools.tool import Effect, Tool, ToolOutput
from engine.api.tools import CallState, ToolCall
from tests.server.byte_engine import wait_until
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words


class Word(BaseModel):
    word: str


class Nothing(BaseModel):
    pass


class Tools:
    """The tools of the server."""

    def __init__(self):
        self.began = threading.Event()
        self.stopped = threading.Event()
        read, write = frozenset({Effect.READ}), frozenset({Effect.WRITE})
        self.registry = Registry(
            tools={
                "echo": Tool("echo", "Says it.", Word, read, self.echo),
                "press": Tool("press", "Presses.", Nothing, write, self.press),
                "wait": Tool("wait", "Waits.", Nothing, read, self.wait),
            }
        )

    async def echo(self, arguments, context):
        return ToolOutput(arguments.word.upper())

    async def press(self, arguments, context):
        return ToolOutput("pressed")

    async def wait(self, arguments, context):
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


@pytest.fixture
def tools():
    return Tools()


@pytest.fixture
def running(tools, tmp_path):
    local = LocalRunService(
        lambda: Cluster(registry=tools.registry, approvals=Approvals(), mode="auto"),
        roots=[tmp_path],
    )
    with live(ScriptedEngine(words("x")), run_service=local) as server:
        yield server
    local.close()


@pytest.fixture
def service(running):
    service = HttpRunService(f"{running.url}/v1/")  # as with --attach, `/v1` may be there
    yield service
    service.close()
    wait_until(lambda: not running.context.open_tools, seconds=60)


def opened(service, *names, mode="ask", events=None):
    report = (lambda event: None) if events is None else events.append
    return service.open_tools(ToolLoopRequest(names, mode=mode), report)


def one_call(name, arguments="{}"):
    return [ToolCall("c1", name, arguments)]


def test_a_tool_is_offered_called_and_reported(service):
    events = []
    session = opened(service, "echo", events=events)
    (tool,) = session.offered().result(60)
    assert (tool.name, tool.description) == ("echo", "Says it.")
    assert tool.parameters["required"] == ["word"]
    calls = one_call("echo", '{"word": "hi"}')
    made = session.act(calls).result(60)
    (result,) = made.results
    assert (result.call, result.text, result.state) == (calls[0], "HI", CallState.OK)
    assert made.may_call
    wait_until(lambda: len(events) == 3, seconds=60)
    kinds = [event.type.value for event in events]
    assert kinds == ["call_started", "call_permitted", "call_finished"]
    assert events[2].call == "c1"
    assert events[2].data["result"] == "HI"
    session.close()


def test_the_loop_is_the_same_as_in_one_process(service):
    session = opened(service, "echo")
    session.offered().result(60)
    rounds = [session.act(one_call("echo", '{"word": "hi"}')).result(60) for _ in range(2)]
    assert [one.may_call for one in rounds] == [True, False]
    session.close()


def test_a_write_waits_for_the_approval(service):
    session = opened(service, "press")
    session.offered().result(60)
    made = session.act(one_call("press"))
    wait_until(service.approvals, seconds=60)
    (request,) = service.approvals()
    assert (request.agent, request.tool) == ("chat", "press")
    assert service.decide(request.id, "once")
    assert made.result(60).results[0].text == "pressed"
    session.close()


@pytest.mark.parametrize("way", ["session", "service", "future"])
def test_closing_stops_the_call_that_runs(running, service, tools, way):
    session = opened(service, "wait")
    session.offered().result(60)
    acting = session.act(one_call("wait"))
    assert tools.began.wait(60)
    match way:
        case "session":
            session.close()
        case "service":
            service.close()
        case "future":
            acting.cancel()
    assert tools.stopped.wait(60)
    with pytest.raises((CancelledError, AgentError)):
        acting.result(60)
    session.close()
    wait_until(lambda: not running.context.open_tools, seconds=60)


def test_tools_that_are_closed_at_once_are_closed_on_the_server(running, service):
    opened(service, "echo").close()
    wait_until(lambda: not running.context.open_tools, seconds=60)


def test_what_cannot_be_used_is_refused_with_the_servers_reason(service):
    with pytest.raises(InvalidTask, match="did you mean echo"):
        opened(service, "ecco").offered().result(60)


def test_without_a_folder_the_reason_says_how_to_give_one():
    local = LocalRunService(lambda: Cluster(registry=load_registry()), roots=[])
    with live(ScriptedEngine(words("x")), run_service=local) as server:
        service = HttpRunService(server.url)
        assert "--agents-root" in service.tool_choices("ask", None).refused["read"]
        with pytest.raises(InvalidTask, match="--agents-root"):
            opened(service, "read").offered().result(60)
        service.close()
    local.close()


def test_the_choices_are_the_servers(service):
    choices = service.tool_choices("deny", None)
    assert choices.tools == {"echo": "Says it.", "press": "Presses.", "wait": "Waits."}
    assert "side effects" in choices.refused["press"]
    assert service.tool_choices("ask", None).refused == {}


def test_a_server_that_is_away_is_named_in_one_sentence():
    service = HttpRunService("http://127.0.0.1:9")
    with pytest.raises(AgentError, match="The server does not answer"):
        opened(service, "echo").offered().result(60)
    service.close()


def test_calls_of_tools_that_are_closed_are_refused(running):
    body = {"calls": [{"id": "c", "name": "echo", "arguments": "{}"}]}
    answer = httpx.post(f"{running.url}/v1/agents/tools/none/calls", json=body)
    assert answer.status_code == 404
    assert "closed" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [{}, {"calls": []}, {"calls": [{"name": "x"}]}, {"calls": [{"id": "", "name": "x"}]}]
)
def test_calls_of_another_form_are_refused(running, body):
    assert httpx.post(f"{running.url}/v1/agents/tools/x/calls", json=body).status_code == 400


def test_a_server_without_agents_has_no_tools():
    with live(ScriptedEngine(words("x"))) as server:
        service = HttpRunService(server.url)
        with pytest.raises(AgentError, match="runs no agents"):
            service.tool_choices("ask", None)
        service.close()
