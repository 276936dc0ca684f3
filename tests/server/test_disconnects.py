"""Disconnecting clients free their blocks, at whatever point they disconnect."""

import asyncio
import json
import random
import threading
from concurrent.futures import Future

import httpx
import pytest

from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

PATIENCE_S = 30  # timeout of waits between threads; reached only on failure
HEAD = "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def slow():
    """An engine whose answers take about a second, so that clients can disconnect during one."""
    with byte_engine(step_s=0.005, max_num_seqs=8) as engine, live(engine) as server:
        yield engine, server


def body(number, *, streaming):
    fields = {"model": "toy", "max_tokens": 400, "ignore_eos": True, "stream": streaming}
    if number % 3:
        return "/v1/completions", fields | {"prompt": "x" * (1 + number % 90), "n": 1 + number % 2}
    message = {"role": "user", "content": "y" * (1 + number % 90)}
    path = "/v1/messages" if number % 2 else "/v1/chat/completions"
    return path, fields | {"messages": [message]}


async def ask_and_leave(address, number, *, streaming, stay_s, abruptly):
    """Send a request and disconnect after a delay, possibly before it was sent."""
    _, writer = await asyncio.open_connection(*address)
    path, fields = body(number, streaming=streaming)
    data = json.dumps(fields).encode()
    writer.write(f"{HEAD.format(path=path)}content-length: {len(data)}\r\n\r\n".encode() + data)
    await asyncio.sleep(stay_s)
    if abruptly:
        writer.transport.abort()
    else:
        writer.close()


async def test_two_hundred_clients_disconnect_at_random_points(slow):
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


class StepGate:
    """Holds the engine inside each step until the test releases it; counts released steps."""

    def __init__(self):
        self.steps = 0
        self._begun = threading.Semaphore(0)
        self._permits = threading.Semaphore(0)

    def acquire(self):
        """What the executor calls in every step."""
        self._begun.release()
        self._permits.acquire()
        self.steps += 1

    def wait_in_step(self):
        assert self._begun.acquire(timeout=PATIENCE_S)

    def to_next_step(self):
        """Let the step end; return inside the next, so the boundary between them is over."""
        self._permits.release()
        self.wait_in_step()

    def open(self):
        self._permits.release(10**4)


class Traffic:
    """Records when requests and aborts reach the engine."""

    def __init__(self, engine, monkeypatch):
        self._submitted = threading.Semaphore(0)
        self._aborted = threading.Semaphore(0)
        submit_all = engine.submit_all

        def watched(requests):
            handles = submit_all(requests)
            for handle in handles:
                monkeypatch.setattr(handle, "abort", self._counting(handle.abort))
                self._submitted.release()
            return handles

        monkeypatch.setattr(engine, "submit_all", watched)

    def _counting(self, abort):
        return lambda: (abort(), self._aborted.release())

    def wait_submitted(self):
        assert self._submitted.acquire(timeout=PATIENCE_S)

    def wait_aborted(self):
        assert self._aborted.acquire(timeout=PATIENCE_S)


def send(connection, path, fields):
    data = json.dumps(fields).encode()
    connection.sendall(
        f"{HEAD.format(path=path)}content-length: {len(data)}\r\n\r\n".encode() + data
    )


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("n", [1, 2])
def test_blocks_are_free_at_the_first_step_boundary_after_the_abort(streaming, n, monkeypatch):
    gate = StepGate()
    fields = {"model": "toy", "max_tokens": 300, "ignore_eos": True, "stream": streaming}
    with byte_engine(gate=gate) as engine, live(engine) as server:
        traffic = Traffic(engine, monkeypatch)
        try:
            with server.connect() as stays:
                send(stays, "/v1/completions", fields | {"prompt": "stay"})
                traffic.wait_submitted()
                gate.wait_in_step()
                with server.connect() as leaves:
                    send(leaves, "/v1/completions", fields | {"prompt": "leave" * 9, "n": n})
                    for _ in range(n):
                        traffic.wait_submitted()
                    for _ in range(n):
                        gate.to_next_step()  # the second choice waits for the KV of the first
                    gate.to_next_step()  # the snapshot now includes them
                    assert engine.snapshot().running == 1 + n
                    assert engine.snapshot().blocks.active > 1
                for _ in range(n):
                    traffic.wait_aborted()
                before = gate.steps
                gate.to_next_step()
                assert gate.steps == before + 1  # the one that was running
                assert engine.snapshot().running == 1
                assert engine.snapshot().blocks.active == 1  # of the remaining client
            traffic.wait_aborted()
            before = gate.steps
            gate.open()
            assert engine.wait_drained(PATIENCE_S)
            assert is_quiet(engine)
            assert gate.steps == before + 1
        finally:
            gate.open()


class UnbuiltGrammars(ScriptedEngine):
    """An engine whose grammars are never built."""

    def __init__(self):
        super().__init__(words("ok"))
        self.builds = []

    def build_grammar(self, grammar):
        self.builds.append(Future())
        return self.builds[-1]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_disconnect_cancels_the_build_of_the_grammar(streaming):
    engine = UnbuiltGrammars()
    fields = {"model": "toy", "prompt": "x", "guided_regex": "a+", "stream": streaming}
    with live(engine) as server:
        with server.connect() as stays, server.connect() as leaves:
            for connection in (stays, leaves):
                send(connection, "/v1/completions", fields)
            wait_until(lambda: len(engine.builds) == 2)
            leaves.close()
            wait_until(lambda: any(build.cancelled() for build in engine.builds))
            assert sum(build.cancelled() for build in engine.builds) == 1
        wait_until(lambda: not server.context.drain.active)
    assert engine.requests == []


@pytest.mark.parametrize("streaming", [True, False])
def test_blocks_are_free_soon_after_a_disconnect(slow, streaming):
    engine, server = slow
    with server.connect() as connection:
        send(connection, *body(1, streaming=streaming))
        wait_until(lambda: engine.snapshot().running > 0)
        aborted_before = engine.snapshot().totals.finished.get("abort", 0)
    wait_until(lambda: is_quiet(engine))
    totals = engine.snapshot().totals
    assert totals.finished["abort"] > aborted_before


def test_a_disconnect_does_not_affect_other_requests(slow):
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
