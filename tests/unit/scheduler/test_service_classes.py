"""An interactive prompt beside requests of lower service classes."""

from dataclasses import replace

import pytest

from engine.api.errors import InvalidRequest
from engine.api.scheduling import BATCH_FORMERS, POLICIES, Scheduling
from tests.fakes.timed_pipeline import TimedPipeline, ask
from tests.fakes.toy_executor import oracle

CONTEXT = 8192


def toy_pipeline(policy="fcfs", former="fixed"):
    toy = TimedPipeline(policy, blocks=5000, context=CONTEXT, budget=512)
    toy.pipeline.scheduler.switch(Scheduling(policy=policy, batch_former=former))
    return toy


def of_class(request, name):
    return replace(request, service_class=name)


def finished(toy, handle, request):
    toy.run()
    answer = handle.drain()
    assert answer.token_ids == oracle(request, max_model_len=CONTEXT)
    return answer.timings.ttft


@pytest.mark.parametrize("former", BATCH_FORMERS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_chat_does_not_wait_for_an_agents_prefill(policy, former):
    times = {}
    for name in ("agent", "interactive"):
        toy = toy_pipeline(policy, former)
        long = of_class(ask(4000, max_tokens=2), name)
        agent = toy.submit(long)
        toy.step(2)
        chat = toy.submit(ask(200, 3, max_tokens=2))
        times[name] = finished(toy, chat, ask(200, 3, max_tokens=2))
        assert agent.drain().token_ids == oracle(long, max_model_len=CONTEXT)
    toy = toy_pipeline(policy, former)
    alone = finished(toy, toy.submit(ask(200, 3, max_tokens=2)), ask(200, 3, max_tokens=2))
    assert times["agent"] <= 2.5 * alone
    assert times["agent"] < times["interactive"]


def test_held_agents_go_on_and_nothing_starves():
    toy = toy_pipeline()
    agents = [toy.submit(of_class(ask(20, at, max_tokens=40), "agent")) for at in range(8)]
    batch = toy.submit(of_class(ask(20, 99, max_tokens=5), "batch"))
    toy.step(3)
    chats = [ask(300, 100 + at, max_tokens=2) for at in range(30)]
    handles = [toy.submit(chat) for chat in chats]
    toy.run()
    for chat, handle in zip(chats, handles, strict=True):
        assert handle.drain().token_ids == oracle(chat, max_model_len=CONTEXT)
    assert all(len(agent.drain().token_ids) == 40 for agent in agents)
    assert len(batch.drain().token_ids) == 5


def test_an_unknown_class_is_refused():
    with pytest.raises(InvalidRequest, match="interactive, agent, batch"):
        toy_pipeline().submit(of_class(ask(5), "royal"))
