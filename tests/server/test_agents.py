"""Runs of agents over HTTP: created, followed, cancelled, approved; the client of `--attach`."""

import json
import threading

import httpx
import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.api.errors import UnknownAgent
from agents.api.events import RunState
from agents.outputs.answer import Answer
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.sandbox import choice
from agents.sandbox.sandbox import SandboxUnavailable
from agents.service.http_service import HttpRunService
from agents.service.local_service import LocalRunService
from agents.service.run_request import RunRequest
from agents.tools.tool import Effect, Tool, ToolOutput
from app.commands.serve import run_server
from app.settings.settings import Settings
from engine.api.config import EngineConfig
from tests.server.byte_engine import wait_until
from tests.server.live import live


class Nothing(BaseModel):
    pass


async def press(arguments, context):
    return ToolOutput("pressed")


async def pusher(task, context):
    output = await context.tool("button")
    return Answer(text=output["text"])


async def echo(task, context):
    return Answer(text=task.text)


def spec(key, *tools):
    return AgentSpec(key, "execution", f"Does {key}.", "You act.", tools, (), "Answer")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    registry = Registry(
        tools={"button": Tool("button", "Press it.", Nothing, frozenset({Effect.WRITE}), press)},
        outputs={"Answer": Answer},
        procedures={"echo": echo, "pusher": pusher},
    )
    roster = Roster({one.key: one for one in (spec("echo"), spec("pusher", "button"))})
    opened = LocalRunService(
        lambda: Cluster(registry=registry, roster=roster, approvals=Approvals()),
        roots=[tmp_path_factory.mktemp("root")],
    )
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def agents_server(engine, service):
    with live(engine, run_service=service, sandbox_layers=("mounts", "seccomp")) as running:
        yield running


@pytest.fixture
def http(agents_server):
    with httpx.Client(base_url=agents_server.url, timeout=30) as client:
        yield client


def begin(http, name, **more):
    return http.post("/v1/agents/runs", json={"kind": "agent", "name": name, **more})


def follow(http, run_id, **more):
    """The events of a run until its end."""
    found = []
    path = f"/v1/agents/runs/{run_id}/events"
    with http.stream("GET", path, params={"stream": True}, **more) as response:
        for line in response.iter_lines():
            if line == "data: [DONE]":
                return found
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
    raise AssertionError("the stream ended early")


def test_a_run_is_created_followed_and_read(http):
    created = begin(http, "echo", task="hello").json()
    assert created["object"] == "agent.run"
    events = follow(http, created["id"])
    assert [one["sequence"] for one in events] == list(range(len(events)))
    whole = http.get(f"/v1/agents/runs/{created['id']}").json()
    assert (whole["state"], whole["result"]["output"]["text"]) == ("ok", "hello")
    again = follow(http, created["id"], headers={"last-event-id": "0"})
    assert again == events[1:]
    listed = http.get("/v1/agents/runs").json()["data"]
    assert created["id"] in [one["id"] for one in listed]


def test_a_call_waits_for_its_approval(http):
    run_id = begin(http, "pusher").json()["id"]
    while not (pending := http.get("/v1/agents/approvals").json()["data"]):
        pass
    (approval,) = pending
    assert (approval["tool"], approval["effects"]) == ("button", ["write"])
    path = f"/v1/agents/approvals/{approval['id']}"
    assert http.post(path, json={"decision": "maybe"}).status_code == 400
    assert http.post(path, json={"decision": "once"}).status_code == 200
    assert http.post(path, json={"decision": "once"}).status_code == 404
    follow(http, run_id)
    assert http.get(f"/v1/agents/runs/{run_id}").json()["result"]["output"]["text"] == "pressed"


def test_a_run_that_waits_is_cancelled(http):
    run_id = begin(http, "pusher").json()["id"]
    assert http.post(f"/v1/agents/runs/{run_id}/cancel", json={}).status_code == 200
    follow(http, run_id)
    assert http.get(f"/v1/agents/runs/{run_id}").json()["state"] == "cancelled"
    assert not http.get("/v1/agents/approvals").json()["data"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "agent", "name": "nobody"}, 404),
        ({"kind": "machine", "name": "echo"}, 400),
        ({"kind": "agent", "name": "echo", "paths": ["/etc/passwd"]}, 400),
        ({"kind": "agent", "name": "echo", "paths": ["../x"]}, 400),
        ({"kind": "repair", "name": "repair", "paths": ["../x"]}, 400),
        ({"kind": "repair", "name": "repair"}, 400),
        ({"kind": "repair", "name": "other", "paths": ["."]}, 400),
        ({"kind": "agent", "name": "echo", "tokens": -1}, 400),
        ({"kind": "agent"}, 400),
    ],
)
def test_a_wrong_request_is_refused(http, body, status):
    answer = http.post("/v1/agents/runs", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_unknown_runs_are_404(http):
    for path in ("", "/events", "/events?stream=true"):
        assert http.get(f"/v1/agents/runs/run-x{path}").status_code == 404


def test_a_server_without_agents_says_so(client):
    answer = client.get("/v1/agents")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_agents")


@pytest.fixture
def remote(agents_server):
    opened = HttpRunService(agents_server.url)
    yield opened
    opened.close()


def test_a_second_client_sees_and_approves_the_same_run(remote, service):
    run_id = service.start(RunRequest("agent", "pusher"))
    seen = threading.Event()
    remote.on_change(lambda: remote.approvals() and seen.set())
    remote._wake.set()
    assert remote.approvals() or seen.wait(20)
    (approval,) = remote.approvals()
    assert approval == service.approvals()[0]
    assert remote.decide(approval.id, "once")
    assert not remote.decide(approval.id, "once")
    done = threading.Event()
    remote.on_change(lambda: remote.result(run_id) is not None and done.set())
    assert remote.result(run_id) or done.wait(20)
    view = next(one for one in remote.runs() if one.id == run_id)
    assert view.state is RunState.OK
    assert list(remote.events(run_id, 0)) == list(service.events(run_id, 0))


def test_a_client_starts_runs_and_gets_the_servers_words(remote):
    assert remote.start(RunRequest("agent", "echo", task="x")).startswith("run-")
    with pytest.raises(UnknownAgent, match="no agent 'nobody'"):
        remote.start(RunRequest("agent", "nobody"))
    assert [one["name"] for one in remote.catalogue()][:2] == ["echo", "pusher"]


def test_the_layers_around_commands_are_listed(http):
    assert http.get("/v1/agents").json()["sandbox_layers"] == ["mounts", "seccomp"]


def test_agents_with_files_are_not_served_without_a_sandbox(monkeypatch, tmp_path):
    monkeypatch.setattr(choice, "_found", {})
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    monkeypatch.setattr(choice, "_kernel", lambda: (0, False))
    settings = Settings(agents_root=tmp_path)
    with pytest.raises(SandboxUnavailable, match=r"no Landlock.* Serve without --agents-root, or"):
        run_server(EngineConfig(model=tmp_path / "none.gguf", name="x"), port=0, settings=settings)


def test_a_run_uses_its_model_until_it_has_finished(http, agents_server):
    """A run that waits for an approval has no request in the engine, but is not done with the model."""
    run_id = begin(http, "pusher").json()["id"]
    primary = agents_server.context.models.primary
    wait_until(lambda: http.get("/v1/agents/approvals").json()["data"])
    assert primary.leases
    (approval,) = http.get("/v1/agents/approvals").json()["data"]
    http.post(f"/v1/agents/approvals/{approval['id']}", json={"decision": "once"})
    follow(http, run_id)
    wait_until(lambda: not primary.leases)
