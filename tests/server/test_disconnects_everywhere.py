"""Clients that leave at any point, on every face that streams: nothing of their requests stays."""

import asyncio
import json
import random

import httpx
import pytest

from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.faces import GENERATING, body_of
from tests.server.live import live

LENGTH = {
    "/v1/responses": {"max_output_tokens": 300},
    "/api/chat": {"options": {"num_predict": 300}},
    "/api/generate": {"options": {"num_predict": 300}},
    "/completion": {"n_predict": 300},
}
CLIENTS = 160


@pytest.fixture(scope="module")
def slow():
    """An engine whose answers take about a second."""
    with (
        byte_engine(step_s=0.004, max_num_seqs=8, context=1024) as engine,
        live(engine) as server,
    ):
        yield engine, server


async def ask_and_leave(address, path, draw):
    body = body_of(path, stream=draw.random() < 0.7, **LENGTH.get(path, {"max_tokens": 300}))
    if "tools" in body:
        del body["tools"]
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n"
    _, writer = await asyncio.open_connection(*address)
    request = head.encode() + data
    writer.write(request[: draw.choice([len(request), len(request), draw.randrange(len(request))])])
    await asyncio.sleep(draw.random() * 0.4)
    if draw.random() < 0.5:
        writer.transport.abort()
    else:
        writer.close()


def gauges(client):
    """The gauges of running work, by name."""
    kinds = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "requests_open")
    return {
        line.split("{")[0].split(" ")[0]: float(line.rsplit(" ", 1)[1])
        for line in client.get("/metrics").text.splitlines()
        if not line.startswith("#") and any(kind in line for kind in kinds)
    }


async def test_clients_of_every_face_leave_at_random_points(slow):
    engine, server = slow
    draw = random.Random(16)
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            path = GENERATING[number % len(GENERATING)]
            group.create_task(ask_and_leave(server.address, path, random.Random(draw.random())))
            await asyncio.sleep(draw.random() * 0.01)
    drain = server.context.drain
    with httpx.Client(base_url=server.url) as client:

        def nothing_is_left():
            found = gauges(client)
            assert len(found) >= 4
            own = found.pop("pravaha_http_requests_open")  # of the request that reads them
            return (
                own == 1 and set(found.values()) == {0.0} and is_quiet(engine) and not drain.active
            )

        await asyncio.to_thread(wait_until, nothing_is_left, seconds=60)
    assert not server.context.running_turns
    assert engine.snapshot().totals.finished["abort"] > 10
