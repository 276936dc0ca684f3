import asyncio
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from app.server.process.drain import Drain
from app.server.wire.errors import ApiError
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.live import live
from tests.server.process import toy_process

ENDLESS = {"step_s": 0.2}


def body(tokens):
    # Greedy: a sampled first token may be a part of a character, whose text comes with the next step.
    fields = {"temperature": 0, "max_tokens": tokens, "ignore_eos": True, "stream": True}
    return {"model": "toy", "prompt": "x"} | fields


def data_of(lines):
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


async def test_a_drain_waits_for_running_work_and_refuses_new():
    drain = Drain()
    with drain.work():
        waiting = asyncio.create_task(drain.run(30))
        await asyncio.sleep(0)
        assert drain.draining
        assert not waiting.done()
        with pytest.raises(ApiError) as refused, drain.work():
            pass
        assert refused.value.status_code == 503
        assert int(refused.value.headers["retry-after"]) > 0
    await waiting


async def test_a_drain_expires_what_does_not_end():
    drain = Drain()

    async def work():
        with drain.work():
            await drain.wait_expired()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    await drain.run(0.0)
    await working


def test_a_drain_finishes_running_requests_and_refuses_new_ones():
    gate = threading.Semaphore(1)
    with (
        byte_engine(gate=gate) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
        client.stream("POST", "/v1/completions", json=body(20)) as response,
    ):
        lines = response.iter_lines()
        next(lines)  # one step has run; the others wait at the gate
        server.server.handle_exit(signal.SIGTERM, None)
        wait_until(lambda: client.get("/ready").status_code == 503)
        refused = client.post("/v1/completions", json=body(1))
        assert client.get("/health").status_code == 200
        gate.release(1000)
        data = data_of(lines)
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "shutting_down"
    assert int(refused.headers["retry-after"]) > 0
    assert data[-1] == "[DONE]"
    assert json.loads(data[-2])["choices"][0]["finish_reason"] == "length"


def test_requests_that_outlive_the_drain_get_an_error():
    with toy_process(engine=ENDLESS, drain_s=0.2) as server:
        with httpx.stream("POST", f"{server.url}/v1/completions", json=body(500)) as response:
            lines = response.iter_lines()
            next(lines)
            server.signal(signal.SIGTERM)
            data = data_of(lines)
        assert json.loads(data[-1])["error"]["code"] == "shutting_down"
        assert server.exit_status() == 0


def test_a_whole_answer_that_is_cut_off_is_a_503():
    with toy_process(engine=ENDLESS, drain_s=0.1) as server, ThreadPoolExecutor(1) as pool:
        whole = body(500) | {"stream": False}
        asking = pool.submit(httpx.post, f"{server.url}/v1/completions", json=whole, timeout=30)
        while httpx.get(f"{server.url}/snapshot").json()["snapshot"]["running"] == 0:
            pass
        server.signal(signal.SIGTERM)
        assert asking.result().status_code == 503
        assert server.exit_status() == 0


def test_a_second_signal_exits_at_once():
    with (
        toy_process(engine=ENDLESS, drain_s=600) as server,
        httpx.stream("POST", f"{server.url}/v1/completions", json=body(500)) as response,
    ):
        lines = response.iter_lines()  # kept: a dropped iterator disconnects
        next(lines)
        server.signal(signal.SIGTERM)
        while httpx.get(f"{server.url}/ready").status_code == 200:
            pass
        server.signal(signal.SIGTERM)
        assert server.exit_status() == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_exits_at_once(number):
    with toy_process() as server:
        assert "loopback only" in server.lines[0]
        assert f"pravaha --attach {server.url}" in server.lines[1]
        assert f"{server.url}/mcp" in server.lines[2]
        server.signal(number)
        assert server.exit_status() == 0
