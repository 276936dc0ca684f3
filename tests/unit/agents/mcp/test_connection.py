"""Connections to real servers, well-behaved and not."""

import asyncio
import json

import pytest

from agents.mcp.connection import MAX_STARTS, McpConnection, opened
from agents.mcp.errors import McpError
from agents.mcp.server import McpServer
from tests.unit.agents.mcp.conftest import running


@pytest.mark.parametrize("flags", [(), ("noise",), ("pages",), ("modern",)])
async def test_tools_are_listed_and_called(make_server, pids, flags):
    async with opened(make_server(*flags)) as connection:
        listing = await connection.list_tools()
        assert [one.name for one in listing.tools][:2] == ["echo", "slow"]
        assert len(listing.tools) == 10
        result = await connection.call("echo", {"text": "ahoj"})
        assert (result.text, result.failed) == ("ahoj", False)
        assert len(running(pids)) == 1
    assert running(pids) == []


async def test_failures_of_a_tool_leave_the_server_in_use(make_server):
    async with opened(make_server()) as connection:
        await connection.list_tools()
        assert (await connection.call("fail", {})).failed
        with pytest.raises(McpError, match="answered with an error: no luck"):
            await connection.call("error", {})
        assert (await connection.call("structured", {})).structured == {"a": [1, 2]}
        assert connection.running


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("crash", "has stopped: it ended with status 3; out of ideas"),
        ("garbage", "more than 20 lines that are no messages"),
        ("huge", "a message of more than 8 MB"),
    ],
)
async def test_a_server_that_breaks_off_fails_the_call_and_can_be_started_again(
    make_server, pids, tool, message
):
    async with opened(make_server()) as connection:
        await connection.list_tools()
        with pytest.raises(McpError, match=message):
            await connection.call(tool, {})
        assert not connection.running
        assert running(pids) == []
        with pytest.raises(McpError, match="is not running"):
            await connection.call("echo", {"text": "x"})
        await connection.list_tools()
        assert (await connection.call("echo", {"text": "x"})).text == "x"


async def test_a_slow_call_is_given_up_with_its_server(make_server, pids):
    async with opened(make_server(call_s=0.1)) as connection:
        await connection.list_tools()
        with pytest.raises(McpError, match=r"took more than 0\.1 s"):
            await connection.call("slow", {})
        assert running(pids) == []


async def test_a_server_that_never_answers_is_given_up(make_server, pids):
    async with opened(make_server("hang", connect_s=0.3)) as connection:
        with pytest.raises(McpError, match=r"did not answer within 0\.3 s"):
            await connection.list_tools()
    assert running(pids) == []


async def test_why_a_server_does_not_start_is_said(make_server):
    async with opened(make_server("exit")) as connection:
        with pytest.raises(McpError, match="it ended with status 7; configuration missing"):
            await connection.list_tools()
    async with opened(McpServer("absent", "/no/such/program")) as connection:
        with pytest.raises(McpError, match=r"absent cannot be started: .*No such file"):
            await connection.list_tools()
    async with opened(McpServer("open", "x", env={"A": "${UNSET_VARIABLE}"})) as connection:
        with pytest.raises(McpError, match="needs the environment variable UNSET_VARIABLE"):
            await connection.list_tools()


async def test_a_server_is_not_started_for_ever(make_server):
    async with opened(make_server()) as connection:
        for _ in range(MAX_STARTS):
            await connection.list_tools()
            with pytest.raises(McpError):
                await connection.call("crash", {})
        with pytest.raises(McpError, match=f"stopped {MAX_STARTS} times"):
            await connection.list_tools()


async def test_a_stubborn_server_and_its_children_are_killed(make_server, pids):
    async with opened(make_server("stubborn", "child")) as connection:
        await connection.list_tools()
        assert len(running(pids)) == 2
    assert running(pids) == []


@pytest.mark.parametrize("moment", ["starting", "calling"])
async def test_cancellation_leaves_no_process(make_server, pids, moment):
    connection = McpConnection(make_server(*(["hang"] if moment == "starting" else [])))

    async def use():
        try:
            await connection.list_tools()
            await connection.call("slow", {})
        finally:
            await connection.close()

    task = asyncio.ensure_future(use())
    while not (pids.exists() and pids.read_text()) or (
        moment == "calling" and not connection.running
    ):
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(pids) == []
    assert [one for one in asyncio.all_tasks() if one is not asyncio.current_task()] == []


async def test_the_environment_is_scrubbed(make_server, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GIVEN", "value")
    server = make_server()
    server.env["TOKEN"] = "x ${GIVEN} y"
    async with opened(server) as connection:
        await connection.list_tools()
        seen = json.loads((await connection.call("environment", {})).text)
    assert seen["TOKEN"] == "x value y"
    assert seen["PATH"]
    assert not {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PYTHONPATH", "GIVEN"} & set(seen)


async def test_a_notice_of_changed_tools_makes_the_list_stale(make_server):
    async with opened(make_server()) as connection:
        await connection.list_tools()
        await connection.call("change", {})
        assert connection.stale
        await connection.list_tools()
        assert not connection.stale


async def test_definitions_that_cannot_be_used_are_left_out(make_server, redefine):
    schema = {"type": "object"}
    redefine(
        {"name": "bad name\x1b[2J", "inputSchema": schema},
        {"name": "x" * 65, "inputSchema": schema},
        {"name": "fat", "description": "x" * 100_000, "inputSchema": schema},
        *({"name": f"tool{number}", "inputSchema": schema} for number in range(120)),
    )
    async with opened(make_server()) as connection:
        listing = await connection.list_tools()
    assert len(listing.tools) == 100
    reasons = " ".join(listing.refused)
    assert "no name of a tool" in reasons
    assert "larger than 64 kB" in reasons
    assert "beyond the first 100 tools" in reasons
    assert "\x1b" not in reasons
