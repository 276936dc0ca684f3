"""The agents' session over both transports, with the toy executor."""

import asyncio

import pytest

from agents.model.ask_all import ask_all
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.session import ModelSession
from engine.api.request import Request, SamplingParams
from engine.api.snapshot import EngineState
from engine.clients.http_client import HttpClient
from engine.clients.in_process import InProcessClient
from tests.server.byte_engine import is_quiet, wait_until


@pytest.fixture(params=["in process", "over HTTP"])
def session(request, engine):
    if request.param == "in process":
        session = ModelSession(InProcessClient(engine))
        yield session
        session.close()
        return
    server = request.getfixturevalue("server")
    client = HttpClient(server.url)
    wait_until(lambda: client.snapshot().state is EngineState.READY)
    session = ModelSession(client, background=True)
    yield session
    session.close()
    client.close()


async def test_questions_share_the_document(session):
    layout = SharedLayout(session)
    decider = Decider(session, layout)
    given = await ask_all(session, layout, decider, "river " * 20, ["one?", "two?"], max_tokens=4)
    assert len(given.replies) == 2
    assert given.shared_tokens % session.block_size() == 0
    assert given.usage.cached_tokens >= given.shared_tokens


async def test_a_cancelled_generation_is_aborted(session, engine):
    prompt = tuple(session.client.tokenize("go on and on"))
    request = Request(prompt, SamplingParams(max_tokens=400, ignore_eos=True, temperature=0.0))
    task = asyncio.create_task(session.generate(request))
    await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0 or task.done())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.to_thread(wait_until, lambda: is_quiet(engine))
    await asyncio.to_thread(wait_until, lambda: session.num_pending == 0)
