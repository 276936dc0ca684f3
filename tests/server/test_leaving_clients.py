"""Whatever the face, and whenever a client leaves: the server holds nothing for it afterwards."""

import asyncio
import random
import threading
import time

import httpx
import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.outputs.answer import Answer
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.service.local_service import LocalRunService
from agents.tools.tool import Effect, Tool, ToolOutput
from app.server.mcp import endpoint
from tests.fakes.toy_models import ToyModels
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.leaving_clients import (
    ALLOWED,
    FACES,
    LeavingClient,
    held,
    in_use_by_models,
    leave_all,
    wait_for_nothing_in_use,
)
from tests.server.live import live
from tests.server.test_soak import resident_bytes
from tests.server.test_tool_loop import TEMPLATE

WARM_UP = 3 * len(FACES)
ALLOWED_GROWTH = 24 << 20
"""Bytes of resident memory over a thousand clients, in which the clients themselves run."""


class Nothing(BaseModel):
    pass


async def nap(arguments, context):
    await asyncio.sleep(0.1)
    return ToolOutput("slept")


async def press(arguments, context):
    return ToolOutput("pressed")


async def napper(task, context):
    for _ in range(3):
        await asyncio.sleep(0.05)
    return Answer(text=task.text)


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint, "SESSION_IDLE_S", 1.0)
    read, write = frozenset({Effect.READ}), frozenset({Effect.WRITE})
    registry = Registry(
        tools={
            "nap": Tool("nap", "Takes a while.", Nothing, read, nap),
            "press": Tool("press", "Presses.", Nothing, write, press),
        },
        outputs={"Answer": Answer},
        procedures={"napper": napper},
    )
    spec = AgentSpec("napper", "execution", "Naps.", "You nap.", (), (), "Answer")
    service = LocalRunService(
        lambda: Cluster(
            registry=registry, roster=Roster({"napper": spec}), approvals=Approvals(), mode="auto"
        ),
        roots=[tmp_path],
    )
    options = {"step_s": 0.004, "max_num_seqs": 16, "context": 4096, "blocks": 2048}
    try:
        with (
            byte_engine(template=TEMPLATE, **options) as engine,
            live(engine, run_service=service, resume_s=0.3) as server,
        ):
            yield server
    finally:
        service.close()


@pytest.mark.parametrize("count", [96, pytest.param(1000, marks=pytest.mark.soak)])
def test_nothing_is_held_for_clients_of_any_face_that_leave_at_random(served, count):
    draw = random.Random(count)
    asyncio.run(leave_all(served, WARM_UP, draw))
    wait_for_nothing_in_use(served)
    before, memory = held(served), resident_bytes("self")
    asyncio.run(leave_all(served, count, draw))
    wait_for_nothing_in_use(served)
    # Closed connections and ended tasks are noticed by the event loop, a turn later.
    wait_until(lambda: all(found <= before[name] for name, found in held(served).items()))
    growth = resident_bytes("self") - memory
    print(f"{count} clients: {before} before and after, {growth >> 20} MiB more memory")
    assert growth < ALLOWED_GROWTH
    assert served.context.models.primary.engine.snapshot().totals.finished["abort"] > count / 8
    with httpx.Client(base_url=served.url, timeout=60) as http:
        gauges = {
            line.split("{")[0]: float(line.rsplit(" ", 1)[1])
            for line in http.get("/metrics").text.splitlines()
            if line.startswith(("pravaha_num_requests_", "pravaha_kv_cache_usage_perc"))
        }
        assert len(gauges) >= 3
        assert set(gauges.values()) == {0.0}
        fields = {"model": "toy", "prompt": "a", "max_tokens": 3, "ignore_eos": True}
        assert http.post("/v1/completions", json=fields).json()["usage"]["completion_tokens"] == 3


MESSAGES = [{"role": "user", "content": "m"}]
ASKED = (
    ("/v1/completions", {"prompt": "p", "max_tokens": 30}),
    ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 30}),
    ("/v1/messages", {"messages": MESSAGES, "max_tokens": 30}),
    ("/v1/responses", {"input": "p", "max_output_tokens": 30}),
    ("/api/chat", {"messages": MESSAGES, "options": {"num_predict": 30}}),
    ("/api/generate", {"prompt": "p", "options": {"num_predict": 30}}),
    ("/completion", {"prompt": "p", "n_predict": 30}),
)


class Pace:
    """A gate of `ToyModels` that opens after a while each time."""

    def __init__(self, seconds):
        self._seconds = seconds

    def acquire(self, timeout=None):
        time.sleep(self._seconds)
        return True


def engine_threads():
    return {one for one in threading.enumerate() if one.name == "pravaha-engine"}


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.soak)])
def test_models_are_loaded_and_unloaded_while_their_clients_leave(tmp_path, count):
    """One of two models fits at a time; requests name either, and some say how long it is to stay."""
    names = ("first", "second")
    before = engine_threads()  # of other tests
    toys = ToyModels(
        tmp_path,
        gates={name: Pace(0.004) for name in names},
        load_gates={name: Pace(0.03) for name in names},
    )
    models = toys.served("first", max_loaded=1, any_installed=True)
    models.start()
    draw = random.Random(count)

    async def one(server, number, gate):
        own = random.Random(draw.random())
        # A change is refused while another one is made.
        client = LeavingClient(server, own, f"client-{number}", allowed=(*ALLOWED, b"503"))
        async with gate:
            name = own.choice(names)
            if own.random() < 0.2:
                change = own.choice(["load", "unload", "reload"])
                await client.ask(f"/v1/models/{name}/{change}", {})
                return
            path, fields = own.choice(ASKED)
            stay = own.choice([0, 0.05, 60, None])
            streams = own.random() < 0.8
            await client.ask(path, fields | {"model": name, "stream": streams, "keep_alive": stay})

    async def all_of_them(server):
        gate = asyncio.Semaphore(16)
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(one(server, number, gate))

    try:
        with live(models) as server:
            asyncio.run(all_of_them(server))
            wait_until(lambda: not any(in_use_by_models(models).values()), seconds=60)
            wait_until(lambda: not models._changes and models._current is None)
            wait_until(lambda: not models._retiring)
            assert not server.context.drain.active
            assert len(models.started()) <= 1
            running = engine_threads() - before
            assert len(running) <= len(names)  # an engine stays, without its model
            with httpx.Client(base_url=server.url, timeout=60) as http:
                for name in names:
                    fields = {"model": name, "prompt": "a", "max_tokens": 3, "ignore_eos": True}
                    answer = http.post("/v1/completions", json=fields).json()
                    assert (answer["model"], answer["usage"]["completion_tokens"]) == (name, 3)
    finally:
        models.close()
