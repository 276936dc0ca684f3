"""Resident memory over two thousand requests, 32 at a time, a quarter of them disconnected."""

import asyncio
import random
import signal
from pathlib import Path

import httpx
import pytest

from tests.server.byte_engine import wait_until
from tests.server.process import pravaha_process

REQUESTS = 2000
AT_ONCE = 32
WARM_UP = 400
ALLOWED_GROWTH = 24 << 20
"""Bytes; a leak of one small answer a request would be more."""

pytestmark = pytest.mark.soak


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


async def one_request(client: httpx.AsyncClient, name: str, draw: random.Random) -> int:
    """Send a request, then read it or disconnect; the number of tokens of a finished answer."""
    body = {
        "model": name,
        "prompt": "word " * draw.randint(1, 60),
        "max_tokens": draw.randint(1, 24),
        "temperature": draw.choice([0, 1]),
        "ignore_eos": True,
        "stream": draw.random() < 0.7,
        "stream_options": None,
    }
    if not body["stream"]:
        response = await client.post("/v1/completions", json=body)
        assert response.status_code == 200
        return response.json()["usage"]["completion_tokens"]
    leaves_after = draw.randint(0, 6) if draw.random() < 0.35 else None
    async with client.stream("POST", "/v1/completions", json=body) as response:
        assert response.status_code == 200
        lines = 0
        async for line in response.aiter_lines():
            assert '"error"' not in line
            lines += bool(line)
            if leaves_after is not None and lines > leaves_after:
                return 0
    return body["max_tokens"]


async def traffic(url: str, name: str, count: int, draw: random.Random) -> int:
    gate = asyncio.Semaphore(AT_ONCE)
    limits = httpx.Limits(max_connections=AT_ONCE * 2)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:

        async def gated():
            async with gate:
                return await one_request(client, name, draw)

        return sum(await asyncio.gather(*(gated() for _ in range(count))))


def test_memory_is_stable_over_two_thousand_requests(demo_model):
    options = ("--ctx", "512", "--kv-cache", "128MiB")
    draw = random.Random(9)
    with pravaha_process(demo_model, *options) as server:
        name = httpx.get(f"{server.url}/v1/models").json()["data"][0]["id"]
        asyncio.run(traffic(server.url, name, WARM_UP, draw))
        before = resident_bytes(server.process.pid)
        finished = asyncio.run(traffic(server.url, name, REQUESTS, draw))
        after = resident_bytes(server.process.pid)

        def snapshot():
            return httpx.get(f"{server.url}/snapshot").json()["snapshot"]

        wait_until(lambda: snapshot()["running"] + snapshot()["blocks"]["active"] == 0)
        generated = snapshot()["totals"]["generation_tokens"]
        growth = after - before
        print(f"RSS {before >> 20} MiB → {after >> 20} MiB over {REQUESTS} requests")
        assert growth < ALLOWED_GROWTH
        assert generated >= finished
        server.signal(signal.SIGTERM)
        assert server.exit_status() == 0
