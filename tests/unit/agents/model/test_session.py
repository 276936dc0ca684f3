"""The session over a scripted client: delivery, budgets, cancelling."""

import asyncio

import pytest

from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import BudgetExhausted, ModelFailure
from agents.model.session import ModelSession
from engine.api.errors import InvalidRequest
from engine.api.request import FinishReason, Request, SamplingParams
from tests.fakes.scripted_client import ScriptedClient


def ask(client, text="hello", **params):
    return Request(tuple(client.tokenize(text)), SamplingParams(**{"max_tokens": 8} | params))


def meter(tokens):
    return BudgetMeter(Budget(tokens=tokens), started=0.0)


async def submitted(session):
    while session.num_pending == 0:
        await asyncio.sleep(0)


@pytest.mark.parametrize("background", [False, True])
async def test_a_request_is_answered(background):
    client = ScriptedClient(["an answer"])
    session = ModelSession(client, background=background)
    generation = await session.generate(ask(client, max_tokens=20))
    assert (generation.text, generation.finish_reason) == ("an answer", FinishReason.STOP)
    assert generation.computed_tokens == generation.prompt_tokens + len(generation.token_ids)
    assert session.num_pending == 0
    session.close()


async def test_the_budget_is_reserved_and_settled():
    client = ScriptedClient(["four"])
    purse = meter(100)
    generation = await ModelSession(client).generate(ask(client), purse)
    assert purse.tokens_used == generation.computed_tokens
    assert purse.tokens_left == 100 - generation.computed_tokens


async def test_nothing_is_submitted_beyond_the_budget():
    client = ScriptedClient(["four"])
    with pytest.raises(BudgetExhausted):
        await ModelSession(client).generate(ask(client), meter(5))
    assert client.requests == []


async def test_a_batch_beyond_the_budget_is_refused_as_a_whole():
    client = ScriptedClient(["a", "b"])
    requests = [ask(client, "shared a"), ask(client, "shared b")]
    with pytest.raises(BudgetExhausted):
        await ModelSession(client).generate_all(requests, meter(20), shared_tokens=7)
    assert client.requests == []
    await ModelSession(client).generate_all(requests, meter(25), shared_tokens=7)


async def test_a_cancelled_waiter_aborts_its_request():
    client = ScriptedClient()
    client.hold = True
    session = ModelSession(client)
    purse = meter(100)
    task = asyncio.create_task(session.generate(ask(client), purse))
    await submitted(session)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.cancelled == [client.requests[0].request_id]
    assert session.num_pending == 0
    assert purse.tokens_left == 100


async def test_a_refused_request_aborts_the_others():
    client = ScriptedClient()
    client.hold = True
    session = ModelSession(client)
    task = asyncio.create_task(session.generate_all([ask(client)]))
    await submitted(session)
    client.refuse = InvalidRequest("too long")
    with pytest.raises(ModelFailure, match="too long"):
        await session.generate_all([ask(client), ask(client)])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert session.num_pending == 0


async def test_an_aborted_request_is_a_failure():
    client = ScriptedClient()
    client.hold = True
    session = ModelSession(client)
    task = asyncio.create_task(session.generate(ask(client)))
    await submitted(session)
    client.cancel(client.requests[0].request_id)
    with pytest.raises(ModelFailure):
        await task


def test_a_session_outlives_an_event_loop():
    client = ScriptedClient(["one", "two"])
    session = ModelSession(client)
    texts = [asyncio.run(session.generate(ask(client))).text for _ in range(2)]
    assert texts == ["one", "two"]
