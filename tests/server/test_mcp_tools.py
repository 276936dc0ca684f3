"""The tools of `/mcp`, called by the SDK's client in both live revisions of the protocol."""

import asyncio
import json
from contextlib import closing

import jsonschema
import pytest
from mcp.client import Client
from mcp_types import PromptReference
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy
from agents.outputs.answer import Answer
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.service.local_service import LocalRunService
from agents.tools.tool import Effect, Tool, ToolOutput
from app.runtime.agents import open_run_service
from app.server.mcp.tools.catalogue import TOOLS
from app.settings.settings import Settings
from engine.api.snapshot import EngineState
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.files_server import files_server
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(params=list(REVISIONS))
def mode(request):
    return request.param


async def call(url, tool, arguments=None, *, mode="auto"):
    async with Client(f"{url}/mcp", mode=mode) as client:
        assert client.protocol_version == REVISIONS[mode]
        await client.list_tools()  # the client then checks structured results against their schemas
        return await client.call_tool(tool, arguments or {})


def text_of(result):
    (block,) = result.content
    return block.text


async def good(url, tool, arguments=None, *, mode="auto"):
    """The structured result of a call that succeeds."""
    result = await call(url, tool, arguments, mode=mode)
    assert not result.is_error, text_of(result)
    jsonschema.validate(result.structured_content, TOOLS[tool].output_schema)
    assert text_of(result)
    return result.structured_content


async def refusal(url, tool, arguments=None, *, mode="auto"):
    """The sentence of a call that fails."""
    result = await call(url, tool, arguments, mode=mode)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


async def test_a_chat_is_that_of_the_api(server, client, mode):
    given = {
        "message": "and then?",
        "system": "Be brief.",
        "history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        "temperature": 1.5,
        "seed": 3,
        "max_tokens": 12,
        "stop": ["no such text"],
    }
    found = await good(server.url, "chat", given, mode=mode)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "and then?"},
    ]
    body = {"model": "toy", "messages": messages, "temperature": 1.5, "seed": 3, "max_tokens": 12}
    same = client.post("/v1/chat/completions", json=body).json()
    assert found["answer"] == same["choices"][0]["message"]["content"]
    assert found["prompt_tokens"] == same["usage"]["prompt_tokens"]
    assert (found["finish_reason"], found["model"]) == ("length", "toy")


async def test_a_cut_answer_says_so_to_who_reads_the_text_alone(server):
    result = await call(server.url, "chat", {"message": "a", "max_tokens": 5, "seed": 4})
    assert text_of(result).endswith("[Cut after 5 tokens: raise max_tokens.]")


async def test_an_empty_answer_says_so_to_who_reads_the_text_alone():
    with live(ScriptedEngine(words(""))) as server:
        result = await call(server.url, "chat", {"message": "a"})
        assert result.structured_content["answer"] == ""
        assert text_of(result) == "[The answer is empty.]"


async def test_an_answer_matches_its_schema(server):
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    found = await good(server.url, "chat", {"message": "a", "answer_schema": schema})
    assert json.loads(found["answer"])["a"] in (1, 2)


async def test_a_completion_is_that_of_the_api(server, client, mode):
    given = {"prompt": "Once upon", "max_tokens": 9, "temperature": 0}
    found = await good(server.url, "complete", given, mode=mode)
    same = client.post("/v1/completions", json={"model": "toy", **given}).json()
    assert found["answer"] == same["choices"][0]["text"]


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, ["yes", "no"]),
        ({"kind": "choice", "options": ["red", "green", "blue"]}, ["red", "green", "blue"]),
        ({"kind": "score", "low": -2, "high": 2}, ["-2", "-1", "0", "1", "2"]),
    ],
)
async def test_a_decision_has_the_probabilities_of_its_options(server, given, options, mode):
    asked = {"question": "Which?", "text": "a text", **given}
    found = await good(server.url, "decide", asked, mode=mode)
    assert list(found["probabilities"]) == options
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert found["answer"] == max(options, key=found["probabilities"].__getitem__)
    if given.get("kind") == "score":
        mean = sum(int(one) * share for one, share in found["probabilities"].items())
        assert found["score"] == pytest.approx(mean)


async def test_the_order_of_options_does_not_decide(server):
    options = ["red", "green", "blue"]
    asked = {"question": "Which?", "kind": "choice"}
    one = await good(server.url, "decide", {**asked, "options": options})
    other = await good(server.url, "decide", {**asked, "options": options[::-1]})
    for option in options:
        assert one["probabilities"][option] == pytest.approx(other["probabilities"][option])


async def test_vectors_are_those_of_the_api(tmp_path, mode):
    with files_server(tmp_path) as served:
        url = served.server.url
        found = await good(url, "embed", {"texts": ["a", "b"]}, mode=mode)
        name = served.embedder.name
        body = {"model": name, "input": ["a", "b"]}
        same = served.http.post("/v1/embeddings", json=body).json()["data"]
        assert found["vectors"] == [one["embedding"] for one in same]
        assert (found["model"], found["dimensions"]) == (name, len(same[0]["embedding"]))


async def test_collections_are_listed_and_searched(tmp_path, mode):
    with files_server(tmp_path) as served:
        url = served.server.url
        files = {"toner.txt": b"The toner of the printer is empty.", "tea.txt": b"Tea is hot."}
        store = served.store_with(files, name="office")
        twins = [served.api.vector_stores.create(name="twin").id for _ in range(2)]
        listed = await good(url, "list_collections", mode=mode)
        assert {"id": store.id, "name": "office", "documents": 2} in listed["collections"]
        for name in ("office", store.id):
            given = {"collection": name, "query": "toner", "limit": 1}
            found = await good(url, "search", given, mode=mode)
            (passage,) = found["passages"]
            assert (passage["file"], passage["line"]) == ("toner.txt", 1)
            assert "toner" in passage["text"]
        shown = text_of(await call(url, "search", given, mode=mode))
        assert shown.startswith("[1] toner.txt, line 1\n")
        assert "there are: " in await refusal(url, "search", {"collection": "x", "query": "a"})
        many = await refusal(url, "search", {"collection": "twin", "query": "a"})
        assert all(one in many for one in twins)
        async with Client(f"{url}/mcp", mode=mode) as client:
            read = await client.read_resource(f"pravaha://collections/{store.id}")
            documents = json.loads(read.contents[0].text)["documents"]
            assert {one["file"] for one in documents} == set(files)
            reference = PromptReference(name="answer_from_documents")
            fitting = await client.complete(reference, {"name": "collection", "value": "OFF"})
            assert fitting.completion.values == ["office"]


class _Nothing(BaseModel):
    pass


async def _press(arguments, context):
    return ToolOutput("pressed")


async def _pusher(task, context):
    output = await context.tool("button")
    return Answer(text=output["text"])


async def _echo(task, context):
    return Answer(text=task.text)


def _spec(key, *tools):
    return AgentSpec(key, "execution", f"Does {key}.", "You act.", tools, (), "Answer")


def _service(tmp_path, approvals):
    registry = Registry(
        tools={"button": Tool("button", "Press it.", _Nothing, frozenset({Effect.WRITE}), _press)},
        outputs={"Answer": Answer},
        procedures={"echo": _echo, "pusher": _pusher},
    )
    roster = Roster({one.key: one for one in (_spec("echo"), _spec("pusher", "button"))})
    return LocalRunService(
        lambda: Cluster(registry=registry, roster=roster, approvals=approvals), roots=[tmp_path]
    )


@pytest.fixture
def agents(engine, tmp_path):
    service = _service(tmp_path, Approvals())
    with live(engine, run_service=service) as running:
        yield running
    service.close()


async def test_an_agent_runs_to_its_end(agents, mode):
    listed = await good(agents.url, "list_agents", {"category": "execution"}, mode=mode)
    assert [one["name"] for one in listed["agents"]] == ["echo", "pusher"]
    given = {"name": "echo", "task": "hello"}
    found = await good(agents.url, "run_agent", given, mode=mode)
    assert (found["state"], found["result"]["output"]["text"]) == ("ok", "hello")
    assert text_of(await call(agents.url, "run_agent", given, mode=mode)) == "hello"


async def test_what_needs_an_approval_waits_for_the_user(agents, mode):
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, message))

    async with Client(f"{agents.url}/mcp", mode=mode) as client:
        running = asyncio.create_task(
            client.call_tool("run_agent", {"name": "pusher"}, progress_callback=on_progress)
        )
        service = agents.context.agents
        await asyncio.to_thread(wait_until, lambda: bool(service.approvals()))
        assert not running.done()
        (pending,) = service.approvals()
        assert await asyncio.to_thread(service.decide, pending.id, "deny")
        denied = await running
    assert denied.is_error
    assert "pusher ended with the state" in text_of(denied)
    assert [one[0] for one in seen] == sorted({one[0] for one in seen})


async def test_a_run_ends_with_its_call(agents, mode):
    service = agents.context.agents
    async with Client(f"{agents.url}/mcp", mode=mode) as client:
        running = asyncio.create_task(client.call_tool("run_agent", {"name": "pusher"}))
        await asyncio.to_thread(wait_until, lambda: bool(service.approvals()))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: service.runs()[0].state.value == "cancelled")
        assert not service.approvals()


async def test_nobody_allows_itself_more(agents):
    assert "no argument 'mode'" in await refusal(
        agents.url, "run_agent", {"name": "pusher", "mode": "auto"}
    )
    outside = {"name": "echo", "paths": ["/etc/passwd"]}
    assert "/etc/passwd" in await refusal(agents.url, "run_agent", outside)


async def test_where_nobody_can_be_asked_an_approval_is_denied_at_once(engine, tmp_path, mode):
    service = _service(tmp_path, Approvals(has_approver=False))
    try:
        with live(engine, run_service=service) as server:
            denied = await refusal(server.url, "run_agent", {"name": "pusher"}, mode=mode)
            assert "nobody can be asked" in denied
    finally:
        service.close()


def test_the_service_of_a_host_has_no_approver(engine, tmp_path):
    settings = Settings(data_dir=tmp_path)
    with closing(open_run_service(settings, engine, roots=(), has_approver=False)) as service:
        assert not service._opened().approvals.has_approver


async def test_a_running_answer_is_forked(mode):
    endless = dict.fromkeys(range(300), ord("a"))
    with (
        byte_engine(step_s=0.01, max_num_seqs=8, force=endless) as engine,
        live(engine) as server,
    ):
        async with Client(f"{server.url}/mcp", mode=mode) as client:
            given = {"message": "a", "request_id": "mine", "max_tokens": 300, "temperature": 0}
            parent = asyncio.create_task(client.call_tool("chat", given))
            await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
            forks = await client.call_tool(
                "fork", {"request_id": "mine", "n": 2, "max_tokens": 4, "temperature": 1}
            )
            assert len(forks.structured_content["continuations"]) == 2
            assert text_of(forks).startswith("[1] ")
            parent.cancel()
            await asyncio.gather(parent, return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: is_quiet(engine))
        unknown = await refusal(server.url, "fork", {"request_id": "mine"})
        assert "mine" in unknown


@pytest.mark.parametrize(
    ("tool", "given", "words_of_it"),
    [
        ("chat", {}, ["'message' is missing", "message, temperature"]),
        ("chat", {"mesage": "a"}, ["no argument 'mesage' (did you mean 'message'?)"]),
        ("chat", {"message": ""}, ["message", "at least 1 character"]),
        ("chat", {"message": "a", "max_tokens": 0}, ["max_tokens", "greater than or equal to 1"]),
        ("chat", {"message": "a", "temperature": "hot"}, ["temperature", "valid number"]),
        ("chat", {"message": "a", "history": [{"role": "tool", "content": ""}]}, ["history.0"]),
        ("chat", {"message": "a", "model": "other"}, ["no model 'other'", "'toy'"]),
        ("chat", {"message": "a" * 600}, ["context"]),
        ("chat", {"message": "a", "answer_schema": {"type": "nothing"}}, ["schema"]),
        ("chat", {"message": "a", "request_id": "no spaces"}, ["request_id"]),
        ("complete", {"prompt": ""}, ["prompt"]),
        ("complete", {"prompt": "a", "suffix": "b"}, ["suffix"]),
        ("decide", {"question": "a", "kind": "choice"}, ["options"]),
        ("decide", {"question": "a", "kind": "choice", "options": ["a", "a"]}, ["different"]),
        ("decide", {"question": "a", "options": ["a", "b"]}, ["no meaning"]),
        ("decide", {"question": "a", "kind": "score", "low": 3, "high": 3}, ["2 to 26 steps"]),
        ("decide", {"question": "a", "kind": "maybe"}, ["yes_no"]),
        ("embed", {"texts": []}, ["texts", "at least 1 item"]),
        ("embed", {"texts": "a"}, ["texts", "valid list"]),
        ("search", {"collection": "x", "query": "a"}, ["no collection 'x'", "there are none"]),
        ("search", {"collection": "x", "query": "a", "limit": 51}, ["limit"]),
        ("list_collections", {"all": True}, ["takes no arguments", "'all'"]),
        ("list_agents", {}, ["runs no agents"]),
        ("run_agent", {"name": "x"}, ["runs no agents"]),
        ("fork", {"request_id": "x"}, ["x"]),
        ("fork", {"request_id": "x", "n": 65}, ["n: "]),
        ("nothing", {}, ["no tool 'nothing'", "chat, complete"]),
    ],
)
async def test_a_refusal_says_what_to_do(server, tool, given, words_of_it, mode):
    sentence = await refusal(server.url, tool, given, mode=mode)
    for part in words_of_it:
        assert part in sentence


async def test_the_tools_send_no_field_that_the_api_does_not_know(engine):
    with live(engine, strict_fields=True) as server:
        sampled = {"max_tokens": 3, "temperature": 1, "top_p": 0.9, "seed": 1, "stop": ["zzz"]}
        await good(server.url, "chat", {"message": "a", "request_id": "one", **sampled})
        await good(server.url, "complete", {"prompt": "a", "request_id": "two", **sampled})
        await good(server.url, "decide", {"question": "Is it?", "text": "a"})


async def test_the_guardrails_check_questions_and_answers():
    guardrails = Guardrails(Policy(blocklist=("secret plan",)))
    plan = dict(enumerate(b"The secret plan is simple and long."))
    with byte_engine(force=plan) as engine, live(engine, guardrails=guardrails) as server:
        refused = await refusal(server.url, "chat", {"message": "A secret plan?"})
        assert "blocked phrase" in refused
        given = {"message": "a", "temperature": 0, "max_tokens": len(plan)}
        result = await call(server.url, "chat", given)
        assert result.structured_content["finish_reason"] == "content_filter"
        assert "secret plan" not in text_of(result)
        assert text_of(result).endswith("[Ended by the guardrails.]")


async def test_null_is_as_good_as_nothing(server):
    given = {"message": "a", "max_tokens": 3, "temperature": 0}
    given |= {"system": None, "history": None, "model": None}
    assert (await good(server.url, "chat", given))["completion_tokens"] == 3


async def test_a_model_that_is_loading_is_said_to_be(mode):
    engine = ScriptedEngine(words("ok"))
    engine.info, engine.state = None, EngineState.LOADING
    with live(engine) as server:
        given = {"message": "a", "model": "toy"}
        assert "still loading" in await refusal(server.url, "chat", given, mode=mode)


async def test_a_failing_engine_is_no_failing_protocol(mode):
    with live(ScriptedEngine(lambda request: RuntimeError("secret path /x"))) as server:
        given = {"message": "a", "model": "toy"}
        sentence = await refusal(server.url, "chat", given, mode=mode)
        assert "log has the details" in sentence
        assert "secret" not in sentence


async def test_prompts_have_their_arguments(server, mode):
    async with Client(f"{server.url}/mcp", mode=mode) as client:
        listed = {one.name: one for one in (await client.list_prompts()).prompts}
        assert {"answer_from_documents", "second_opinion", "classify", "audit_code"} == set(listed)
        given = {"collection": "office", "question": "Why {so}?"}
        found = await client.get_prompt("answer_from_documents", given)
        (message,) = found.messages
        assert "Why {so}?" in message.content.text
        assert "'office'" in message.content.text
        default = await client.get_prompt("audit_code", {"paths": "src"})
        assert "auth_audit" in default.messages[0].content.text
        for name, arguments in (("classify", {}), ("classify", {"x": "y"}), ("none", {})):
            with pytest.raises(Exception, match=r"needs texts|takes texts|There is no prompt"):
                await client.get_prompt(name, arguments)


async def test_resources_are_listed_and_read(agents, mode):
    async with Client(f"{agents.url}/mcp", mode=mode) as client:
        listed = [one.uri for one in (await client.list_resources()).resources]
        assert set(listed) >= {
            f"pravaha://{name}"
            for name in ("metrics", "models", "agents", "collections", "conversations")
        }
        for uri in listed:
            (contents,) = (await client.read_resource(uri)).contents
            if contents.mime_type == "application/json":
                assert json.loads(contents.text)
        models = json.loads((await client.read_resource("pravaha://models")).contents[0].text)
        assert models["data"][0]["id"] == "toy"
