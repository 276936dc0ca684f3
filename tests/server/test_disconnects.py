"""Clients that leave free their blocks; whenever they leave, nothing is left behind."""

import asyncio
import json
import random

import httpx
import pytest

from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live

HEAD = "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def slow():
    """An engine whose answers take about a second, so that clients can leave in the middle."""
    with byte_engine(step_s=0.005, max_num_seqs=8) as engine, live(engine) as server:
        yield engine, server


def body(number, *, streaming):
    fields = {"model": "toy", "max_tokens": 400, "ignore_eos": True, "stream": streaming}
    if number % 3:
        return "/v1/completions", fields | {"prompt": "x" * (1 + number % 90), "n": 1 + number % 2}
    message = {"role": "user", "content": "y" * (1 + number % 90)}
    return "/v1/chat/completions", fields | {"messages": [message]}


async def ask_and_leave(address, number, *, streaming, stay_s, abruptly):
    """Send a request and hang up after a while, possibly before it was sent."""
    _, writer = await asyncio.open_connection(*address)
    path, fields = body(number, streaming=streaming)
    data = json.dumps(fields).encode()
    writer.write(f"{HEAD.format(path=path)}content-length: {len(data)}\r\n\r\n".encode() + data)
    await asyncio.sleep(stay_s)
    if abruptly:
        writer.transport.abort()
    else:
        writer.close()


async def test_two_hundred_clients_leave_at_random_points(slow):
    engine, server = slow
    draw = random.Random(3)
    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(
                ask_and_leave(
                    server.address,
                    number,
                    streaming=draw.random() < 0.5,
                    stay_s=draw.random() * 0.6,
                    abruptly=draw.random() < 0.5,
                )
            )
            await asyncio.sleep(draw.random() * 0.01)
    await asyncio.to_thread(
        wait_until, lambda: is_quiet(engine) and not server.context.drain.active
    )
    async with httpx.AsyncClient(base_url=server.url) as client:
        text = (await client.get("/metrics")).text
    gauges = {
        line.split("{")[0]: float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith(("pravaha_num_requests_", "pravaha_kv_cache_usage_perc"))
    }
    assert len(gauges) >= 3
    assert set(gauges.values()) == {0.0}
    assert engine.snapshot().totals.finished["abort"] > 50
    assert "pravaha_http_disconnects_total{" in text


@pytest.mark.parametrize("streaming", [True, False])
def test_blocks_are_free_within_a_step_of_the_hang_up(slow, streaming):
    engine, server = slow
    path, fields = body(1, streaming=streaming)
    data = json.dumps(fields).encode()
    with server.connect() as connection:
        head = f"{HEAD.format(path=path)}content-length: {len(data)}\r\n\r\n".encode()
        connection.sendall(head + data)
        wait_until(lambda: engine.snapshot().running > 0)
        aborted_before = engine.snapshot().totals.finished.get("abort", 0)
    wait_until(lambda: is_quiet(engine))
    totals = engine.snapshot().totals
    assert totals.finished["abort"] > aborted_before


def test_leaving_does_not_disturb_the_others(slow):
    engine, server = slow
    fields = {"model": "toy", "prompt": "stay", "max_tokens": 60, "temperature": 0}
    alone = httpx.post(f"{server.url}/v1/completions", json=fields).json()

    async def crowd():
        async with httpx.AsyncClient(timeout=60) as client, asyncio.TaskGroup() as group:
            staying = group.create_task(client.post(f"{server.url}/v1/completions", json=fields))
            for number in range(20):
                group.create_task(
                    ask_and_leave(
                        server.address, number, streaming=True, stay_s=number / 200, abruptly=True
                    )
                )
        return staying.result().json()

    answer = asyncio.run(crowd())
    assert answer["choices"] == alone["choices"]
    wait_until(lambda: is_quiet(engine))
