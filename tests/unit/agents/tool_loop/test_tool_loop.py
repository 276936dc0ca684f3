"""Calls of a model's answers: made, refused, repeated, counted, cancelled."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from agents import Cluster
from agents.api.errors import InvalidSpec, InvalidTask
from agents.mcp.server import McpServer
from agents.mcp.servers import McpServers
from agents.plugins.registry import Registry, load_registry
from agents.runs.approvals import Approvals
from agents.tool_loop.opening import open_loop
from agents.tool_loop.tool_loop import MAX_CALLS
from agents.tool_loop.values import ToolLoopRequest
from agents.tools.tool import Effect, Taint, Tool, ToolOutput
from engine.api.tools import CallState, ToolCall
from tests.unit.agents.mcp.conftest import SCRIPT


class Word(BaseModel):
    word: str = Field(min_length=1)


class Nothing(BaseModel):
    pass


class Made:
    """Tools that note what they are called with."""

    def __init__(self):
        self.calls = []
        self.began = asyncio.Event()
        self.stopped = False
        self.results = iter(range(100))

    def registry(self):
        read = frozenset({Effect.READ})
        tools = [
            Tool("echo", "Says it.", Word, read, self.echo),
            Tool("poll", "Asks.", Nothing, read, self.poll, idempotent=False),
            Tool("same", "Asks.", Nothing, read, self.same, idempotent=False),
            Tool("press", "Presses.", Nothing, frozenset({Effect.WRITE}), self.press),
            Tool("fail", "Fails.", Nothing, read, self.fail),
            Tool("wait", "Waits.", Nothing, read, self.wait),
            Tool("away", "Is away.", Nothing, read, self.same, unavailable="It is away."),
        ]
        return Registry(tools={tool.name: tool for tool in tools})

    async def echo(self, arguments, context):
        self.calls.append(arguments.word)
        return ToolOutput(arguments.word.upper())

    async def poll(self, arguments, context):
        self.calls.append("poll")
        return ToolOutput(str(next(self.results)))

    async def same(self, arguments, context):
        self.calls.append("same")
        return ToolOutput("same", taint=frozenset({Taint.UNTRUSTED, Taint.PRIVATE}))

    async def press(self, arguments, context):
        self.calls.append("press")
        return ToolOutput("pressed")

    async def fail(self, arguments, context):
        raise RuntimeError("broken")

    async def wait(self, arguments, context):
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True


class Opened:
    """A loop over `Made`, and what it has reported."""

    def __init__(self, **wanted):
        self.made = Made()
        self.approvals = Approvals()
        self.cluster = Cluster(
            registry=self.made.registry(), approvals=self.approvals, mode=wanted.pop("most", "auto")
        )
        self.wanted = ToolLoopRequest(root=Path("/"), **wanted)
        self.events = []

    async def __aenter__(self):
        opened = await open_loop(self.wanted, self.cluster.loop_means, self.events.append)
        self.offered, self.loop, self.close = opened.offered, opened.loop, opened.close
        return self

    async def __aexit__(self, *error):
        await self.close()

    async def act(self, *calls):
        given = [
            ToolCall(
                f"c{number}",
                name,
                arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
            for number, (name, arguments) in enumerate(calls)
        ]
        return await self.loop.act(given)

    def kinds(self):
        return [event.type.value for event in self.events]


async def test_a_call_is_made_and_reported():
    async with Opened() as opened:
        done = await opened.act(("echo", {"word": "hi"}))
    (result,) = done.results
    assert (result.text, result.state, done.may_call) == ("HI", CallState.OK, True)
    begun, permitted, ended = [event.fields() for event in opened.events]
    assert permitted["type"] == "call_permitted"
    assert begun == {
        "type": "call_started", "call_id": "c0", "name": "echo", "arguments": '{"word": "hi"}', "round": 1,
    }  # fmt: skip
    assert (ended["type"], ended["call_id"], ended["state"], ended["result"]) == (
        "call_finished", "c0", "ok", "HI",
    )  # fmt: skip


async def test_only_tools_that_read_are_offered_unasked():
    async with Opened() as opened:
        names = [tool.name for tool in opened.offered]
    assert names == ["echo", "poll", "same", "fail", "wait"]
    (echo,) = [tool for tool in opened.offered if tool.name == "echo"]
    assert "title" not in json.dumps(echo.parameters)
    assert echo.parameters["required"] == ["word"]


async def test_titles_go_and_properties_of_that_name_stay():
    class Book(BaseModel):
        title: str

    opened = Opened(tools=("book",))
    opened.cluster.registry.tools["book"] = Tool(
        "book", "A book.", Book, frozenset({Effect.READ}), opened.made.echo
    )
    async with opened:
        (tool,) = opened.offered
    assert tool.parameters["properties"] == {"title": {"type": "string"}}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("fail", {}), "RuntimeError: broken"),
        (("echo", {"word": ""}), "word:"),
        (("echo", {}), "word:"),
        (("echo", "[1]"), "no JSON object"),
        (("echo", "{"), "no JSON object"),
        (("ecko", {}), "There is no tool 'ecko'; there are: echo,"),
        (("press", {}), "There is no tool 'press'"),
    ],
)
async def test_what_goes_wrong_is_a_result(call, said):
    async with Opened() as opened:
        done = await opened.act(call)
    (result,) = done.results
    assert said in result.text
    assert (result.state, done.may_call) == (CallState.FAILED, True)


async def test_the_last_round_is_the_last():
    async with Opened(max_rounds=2) as opened:
        rounds = [await opened.act(("echo", {"word": word})) for word in "ab"]
    assert [one.may_call for one in rounds] == [True, False]


async def test_an_equal_call_has_its_former_result_and_is_followed_by_words():
    async with Opened() as opened:
        rounds = [
            await opened.act(("echo", arguments))
            for arguments in ('{"word": "a"}', '{ "word":"a" }')
        ]
    assert opened.made.calls == ["a"]
    assert [one.may_call for one in rounds] == [True, False]
    assert [(one.results[0].text, one.results[0].state.value) for one in rounds] == [
        ("A", "ok")
    ] * 2


async def test_an_equal_call_beside_a_new_one_does_not_end_the_calls():
    async with Opened() as opened:
        await opened.act(("echo", {"word": "a"}))
        done = await opened.act(("echo", {"word": "a"}), ("echo", {"word": "b"}))
        both = await opened.act(("echo", {"word": "b"}), ("echo", {"word": "a"}))
    assert opened.made.calls == ["a", "b"]
    assert (done.may_call, both.may_call) == (True, False)


@pytest.mark.parametrize("call", [("echo", {}), ("echo", "["), ("ecko", {})])
async def test_a_call_that_is_wrong_twice_in_the_same_way_is_followed_by_words(call):
    async with Opened() as opened:
        rounds = [await opened.act(call) for _ in range(2)]
    assert [one.may_call for one in rounds] == [True, False]
    assert rounds[0].results[0].text == rounds[1].results[0].text


async def test_a_call_whose_result_changes_is_made_as_often_as_it_is_asked_for():
    async with Opened() as opened:
        rounds = [await opened.act(("poll", {})) for _ in range(4)]
        assert [one.results[0].text for one in rounds] == ["0", "1", "2", "3"]
        assert all(one.may_call for one in rounds)
        same = [await opened.act(("same", {})) for _ in range(2)]
    assert [one.may_call for one in same] == [True, False]
    assert opened.made.calls == ["poll"] * 4 + ["same"] * 2


async def test_a_write_makes_earlier_results_old():
    async with Opened(tools=("echo", "press"), mode="auto") as opened:
        await opened.act(("echo", {"word": "a"}), ("echo", {"word": "a"}), ("press", {}))
        done = await opened.act(("echo", {"word": "a"}))
    assert done.may_call
    assert opened.made.calls == ["a", "press", "a"]


async def test_calls_beyond_the_most_of_an_answer_are_not_made():
    async with Opened() as opened:
        done = await opened.act(*[("echo", {"word": str(n)}) for n in range(MAX_CALLS + 1)])
    assert len(opened.made.calls) == MAX_CALLS
    assert done.results[-1].state is CallState.FAILED


async def decide(opened, decision):
    """Decide the next approval that is asked for."""
    asked = asyncio.Event()
    opened.approvals.on_change(asked.set)
    await asked.wait()
    (request,) = opened.approvals.pending
    opened.approvals.decide(request.id, decision, reason="no")
    return request


@pytest.mark.parametrize(("decision", "state"), [("once", "ok"), ("deny", "denied")])
async def test_a_tool_with_side_effects_waits_for_an_approval(decision, state):
    async with Opened(tools=("press",), mode="ask") as opened:
        request, done = await asyncio.gather(decide(opened, decision), opened.act(("press", {})))
    assert (request.agent, request.tool) == ("chat", "press")
    assert done.results[0].state.value == state
    assert opened.made.calls == (["press"] if state == "ok" else [])
    permitted = ["call_permitted"] if state == "ok" else []
    assert opened.kinds() == [
        "call_started", "approval_requested", "approval_resolved", *permitted, "call_finished",
    ]  # fmt: skip
    resolved = opened.events[2].fields()
    assert (resolved["name"], resolved["allowed"]) == ("press", decision == "once")


async def test_what_was_denied_is_not_asked_again():
    async with Opened(tools=("press",), mode="ask") as opened:
        await asyncio.gather(decide(opened, "deny"), opened.act(("press", {})))
        again = await opened.act(("press", {}))
    assert again.results[0].state is CallState.DENIED
    assert opened.kinds().count("approval_requested") == 1


async def test_always_holds_for_the_conversation():
    async with Opened(tools=("press",), mode="ask", conversation="one") as opened:
        await asyncio.gather(decide(opened, "always"), opened.act(("press", {})))
        other = await open_loop(opened.wanted, opened.cluster.loop_means, opened.events.append)
        done = await other.loop.act([ToolCall("d", "press", "{}")])
        await other.close()
    assert done.results[0].state is CallState.OK


async def test_untrusted_and_private_data_ask_for_a_write_in_every_mode():
    async with Opened(tools=("same", "press"), mode="auto") as opened:
        await opened.act(("same", {}))
        await asyncio.gather(decide(opened, "deny"), opened.act(("press", {})))
    assert "approval_requested" in opened.kinds()


async def test_cancelling_stops_the_tool_that_runs():
    async with Opened() as opened:
        acting = asyncio.ensure_future(opened.act(("wait", {})))
        await opened.made.began.wait()
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
    assert opened.made.stopped


async def test_cancelling_withdraws_the_approval_that_waits():
    async with Opened(tools=("press",), mode="ask") as opened:
        asked = asyncio.Event()
        opened.approvals.on_change(asked.set)
        acting = asyncio.ensure_future(opened.act(("press", {})))
        await asked.wait()
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
    assert not opened.approvals.pending


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"tools": ("ecco",)}, "There is no tool 'ecco': did you mean echo?"),
        ({"tools": ("away",)}, "It is away."),
        ({"tools": ("press",)}, "press has side effects"),
        ({"tools": ("press",), "mode": "auto", "most": "deny"}, "press has side effects"),
        ({"tools": ()}, "nothing to call"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"mcp_servers": ("nobody",)}, "There is no MCP server"),
    ],
)
async def test_what_cannot_be_used_is_refused(wanted, said):
    with pytest.raises((InvalidTask, InvalidSpec), match=said.replace("?", r"\?")):
        async with Opened(**wanted):
            pass


async def test_without_a_folder_no_file_is_read(tmp_path):
    (tmp_path / "notes.txt").write_text("seven")
    means = Cluster(registry=load_registry()).loop_means
    with pytest.raises(InvalidTask, match="--agents-root"):
        await open_loop(ToolLoopRequest(tools=("read",)), means, lambda event: None)
    opened = await open_loop(
        ToolLoopRequest(tools=("read",), root=tmp_path), means, lambda event: None
    )
    done = await opened.loop.act(
        [ToolCall("a", "read", '{"path": "notes.txt"}'), ToolCall("b", "read", '{"path": "../x"}')]
    )
    assert "seven" in done.results[0].text
    assert [one.state.value for one in done.results] == ["ok", "failed"]


async def test_a_tool_of_an_mcp_server_is_called(tmp_path):
    server = McpServer(
        "toy", sys.executable, ("-S", "-E", str(SCRIPT)), connect_s=60.0, call_s=60.0
    )
    approvals = Approvals()
    registry = Registry(mcp=McpServers([server], tmp_path / "approved.json"))
    means = Cluster(registry=registry, approvals=approvals).loop_means

    def allow():
        for request in approvals.pending:
            approvals.decide(request.id, "once")

    approvals.on_change(lambda: asyncio.get_running_loop().call_soon(allow))
    events = []
    wanted = ToolLoopRequest(tools=(), mcp_servers=("toy",), mode="ask", root=tmp_path)
    opened = await open_loop(wanted, means, events.append)
    try:
        names = [tool.name for tool in opened.offered]
        assert names
        assert all(name.startswith("toy.") for name in names)
        done = await opened.loop.act([ToolCall("a", "toy.echo", '{"text": "hello"}')])
    finally:
        await opened.close()
    assert "hello" in done.results[0].text
    assert [event.type.value for event in events].count("approval_requested") == 3


async def test_the_calls_of_all_answers_may_be_bounded():
    async with Opened(max_calls=2) as opened:
        first = await opened.act(("poll", {}))
        second = await opened.act(("poll", {}), ("poll", {}))
    assert (first.may_call, second.may_call) == (True, False)
    assert [one.state for one in second.results] == [CallState.OK, CallState.FAILED]
    assert opened.made.calls == ["poll", "poll"]


async def test_the_calls_of_two_answers_do_not_mix():
    async with Opened(tools=("press", "echo"), mode="ask") as opened:
        asked = asyncio.Event()
        opened.approvals.on_change(asked.set)
        first = asyncio.create_task(opened.loop.act([ToolCall("a", "press", "{}")]))
        await asked.wait()
        second = asyncio.create_task(opened.loop.act([ToolCall("b", "echo", '{"word": "hi"}')]))
        await asyncio.sleep(0)  # it has begun
        (request,) = opened.approvals.pending
        opened.approvals.decide(request.id, "once")
        made = [one.text for round_ in (await first, await second) for one in round_.results]
    assert made == ["pressed", "HI"]
    kinds = [(event.call, event.type.value) for event in opened.events]
    assert [call for call, _ in kinds] == sorted(call for call, _ in kinds)
    assert ("a", "approval_resolved") in kinds
