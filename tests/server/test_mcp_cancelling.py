"""Calls of tools that end early: cancelled, left, or longer than the server. No block stays in use."""

import asyncio
import json
import random
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from mcp.client import Client

from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.mcp_requests import Session, message, modern, result_of
from tests.server.process import toy_process

LONG = {"message": "tell me", "max_tokens": 400, "temperature": 0}
LETTERS = random.Random(1)
ENDLESS = {position: LETTERS.randrange(97, 123) for position in range(400)}
"""No end, and nothing repeated that could be drafted."""
NUMBERS = {"type": "array", "items": {"type": "integer"}, "minItems": 300}
CALLS = [
    ("chat", LONG),
    ("complete", {"prompt": "Once", "max_tokens": 400, "temperature": 0}),
    ("chat", {**LONG, "answer_schema": NUMBERS}),
]


@pytest.fixture(scope="module")
def slow():
    """An engine whose answers take seconds."""
    with byte_engine(step_s=0.01, max_num_seqs=8, force=ENDLESS) as engine, live(engine) as server:
        yield engine, server


async def until_quiet(engine, server):
    await asyncio.to_thread(
        wait_until, lambda: is_quiet(engine) and not server.context.drain.active
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("tool", "given"), CALLS)
async def test_a_cancelled_call_stops_its_request(slow, tool, given, mode):
    engine, server = slow
    async with Client(f"{server.url}/mcp", mode=mode) as client:
        running = asyncio.create_task(client.call_tool(tool, given))
        await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await until_quiet(engine, server)
        short = await client.call_tool("complete", {"prompt": "a", "max_tokens": 1})
        assert not short.is_error  # the connection goes on


def request_of(server, revision, tool, given):
    """The bytes of a call."""
    params = {"name": tool, "arguments": given, "_meta": {"progressToken": "p"}}
    if revision == "modern":
        body, headers = modern("tools/call", params, progressToken="p")
    else:
        with httpx.Client(base_url=server.url) as http:
            headers = Session(http).headers
        body = message("tools/call", params)
    return post(body, headers)


def post(body, headers):
    data = json.dumps(body).encode()
    given_headers = {"host": "localhost", "content-type": "application/json", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in given_headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}content-length: {len(data)}\r\n\r\n".encode() + data


async def call_and_leave(server, data, *, stay_s, abruptly):
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(data)
    await asyncio.sleep(stay_s)
    if abruptly:
        writer.transport.abort()
    else:
        writer.close()


@pytest.mark.parametrize("revision", ["modern", "legacy"])
async def test_a_client_that_leaves_stops_its_request(slow, revision):
    engine, server = slow
    aborted = engine.snapshot().totals.finished.get("abort", 0)
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(request_of(server, revision, *CALLS[0]))
    await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
    writer.close()
    await until_quiet(engine, server)
    assert engine.snapshot().totals.finished["abort"] > aborted


async def test_a_session_goes_on_after_a_lost_connection(slow):
    engine, server = slow
    with httpx.Client(base_url=server.url) as http:
        session = Session(http)
        call = message("tools/call", {"name": "chat", "arguments": LONG})
        _, writer = await asyncio.open_connection(*server.address)
        writer.write(post(call, session.headers))
        await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
        writer.close()
        await until_quiet(engine, server)
        assert result_of(session.ask("ping")) == {}


def test_a_server_with_sessions_and_calls_exits_when_it_is_told_to():
    endless = {str(position): token for position, token in ENDLESS.items()}
    with (
        toy_process(engine={"step_s": 0.02, "force": endless}, drain_s=0.5) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
        ThreadPoolExecutor() as pool,
    ):
        Session(http)  # an idle one
        session = Session(http)
        given = {"name": "chat", "arguments": LONG}
        running = pool.submit(session.ask, "tools/call", given)
        wait_until(lambda: is_running(http))
        server.signal(signal.SIGTERM)
        found = result_of(running.result())
        assert found["isError"]
        assert "shutting down" in found["content"][0]["text"]
        assert server.exit_status() == 0
        assert "Traceback" not in "".join(server.lines)


def is_running(http):
    text = http.get("/metrics").text
    (line,) = [one for one in text.splitlines() if one.startswith("pravaha_num_requests_running")]
    return float(line.rsplit(" ", 1)[1]) > 0


async def test_clients_that_leave_at_random_points(slow):
    engine, server = slow
    draw = random.Random(5)
    requests = [
        request_of(server, draw.choice(["modern", "legacy"]), *draw.choice(CALLS))
        for _ in range(60)
    ]
    async with asyncio.TaskGroup() as group:
        for data in requests:
            group.create_task(
                call_and_leave(
                    server, data, stay_s=draw.random() * 0.5, abruptly=draw.random() < 0.5
                )
            )
            await asyncio.sleep(draw.random() * 0.01)
    await until_quiet(engine, server)
    async with httpx.AsyncClient(base_url=server.url) as http:
        text = (await http.get("/metrics")).text
    assert "pravaha_kv_cache_usage_perc" in text
    for line in text.splitlines():
        if line.startswith(("pravaha_num_requests_", "pravaha_kv_cache_usage_perc")):
            assert float(line.rsplit(" ", 1)[1]) == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_progress_increases_and_names_its_total(slow, mode):
    _, server = slow
    seen = []

    async def on_progress(progress, total, text):
        seen.append((progress, total, text))

    async with Client(f"{server.url}/mcp", mode=mode) as client:
        await client.call_tool("chat", {**LONG, "max_tokens": 150}, progress_callback=on_progress)
    values = [progress for progress, _, _ in seen]
    assert len(values) >= 2
    assert values == sorted(set(values))
    told = [one for one in seen if one[1] is not None]  # the others say that it is at work
    assert all(0 < progress <= total == 150 for progress, total, _ in told)
    assert told[-1][2].endswith("tokens generated")


async def test_who_asked_for_no_progress_gets_none(slow):
    _, server = slow
    body, headers = modern("tools/call", {"name": "chat", "arguments": {**LONG, "max_tokens": 99}})
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        response = await http.post("/mcp", json=body, headers=headers)
    assert response.status_code == 200
    assert "notifications/progress" not in response.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_drain_ends_calls_with_a_sentence(mode):
    with byte_engine(step_s=0.01, force=ENDLESS) as engine, live(engine) as server:
        async with Client(f"{server.url}/mcp", mode=mode) as client:
            running = asyncio.create_task(client.call_tool("chat", LONG))
            await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
            server.context.drain.begin()
            refused = await client.call_tool("chat", {"message": "more"})
            loop = server.server._loop
            loop.call_soon_threadsafe(server.context.drain.expire)
            ended = await running
        for result in (refused, ended):
            assert result.is_error
            assert "shutting down" in result.content[0].text
        await until_quiet(engine, server)
