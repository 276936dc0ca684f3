"""Tokens of answers and prompts: shown, priced, computed ahead."""

import math

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.request import FinishReason
from engine.conversations.session import TreeSession
from tests.fakes.chat_toys import EOS
from tests.unit.conversations.talking import chat, texts


@pytest.fixture
def session(store, client):
    return TreeSession(store, client, stop_repetition=False)


def test_the_tokens_of_an_answer_add_up_to_its_text(session, client):
    _, answer = chat(session, client, "one", "abba c")
    tokens = session.tokens.of(answer)
    assert "".join(tokens.texts) == "abba c"
    assert len(tokens.token_ids) == len(tokens.texts) == len(tokens.logprobs) == len(tokens.topk)
    assert tokens.token_ids[-1] == EOS
    assert not any(map(math.isnan, tokens.logprobs))


def test_tokens_of_a_message_or_of_another_model_are_refused(session, client):
    question, answer = chat(session, client, "one", "abc")
    with pytest.raises(InvalidRequest, match="generated answers"):
        session.tokens.of(question)
    client.tokenizer.fingerprint = "toy-2"
    with pytest.raises(InvalidRequest, match="from toy"):
        session.tokens.of(answer)


def test_the_perplexity_of_an_answer_is_known_while_it_runs_and_afterwards(session, client):
    chat(session, client, "a", "one")
    one, other = session.branches.expand(2)
    client.write("xyz", at=-2)
    session.pump()
    assert session.tokens.perplexity(one) == pytest.approx(math.exp(0.5))
    assert session.tokens.perplexity(other) is None
    client.write("", eos=True, at=-2)
    client.write("", eos=True, at=-1)
    session.pump()
    assert session.tokens.perplexity(one) == pytest.approx(math.exp(0.5))


def test_warming_computes_a_path_without_an_answer(session, client):
    _, answer = chat(session, client, "Hello", "Hi there")
    before = texts(session)
    request_id, submitted = session.tokens.warm(answer)
    assert submitted.result() == request_id
    request = client.requests[-1]
    assert request.request_id == request_id
    assert request.prompt_ids == session.tokens.prompt_ids(answer)
    assert request.sampling.max_tokens == 0
    assert request.priority > client.requests[0].priority
    client.write("", finish=FinishReason.LENGTH)
    session.pump()
    assert client.drain(request_id) is None
    assert texts(session) == before


def test_the_price_of_a_fork_is_that_of_its_tokens(session, client, store):
    question, answer = chat(session, client, "one", "abc")
    prompt = len(client.requests[0].prompt_ids)
    store.writes.flush()
    answered = len(store.nodes.get(answer).token_ids)

    def price(node_id, at=None):
        return session.tokens.price(node_id, at=at).result()

    assert price(question).prefill_tokens == prompt
    assert price(answer).prefill_tokens == prompt + answered
    assert price(answer, at=1).prefill_tokens == prompt + 1


def test_the_next_tokens_are_computed_after_the_kept_ones(session, client):
    _, answer = chat(session, client, "one", "abc")
    tokens = session.tokens.of(answer)
    asked = session.tokens.next_tokens(answer, 2)
    request = client.requests[-1]
    assert request.prompt_ids[-2:] == tokens.token_ids[:2]
    assert (request.continued_tokens, request.sampling.max_tokens) == (2, 1)
    assert asked.poll() is None
    (token_id,) = client.write("x", finish=FinishReason.LENGTH)
    found = asked.poll()
    assert found is not None
    assert found[0].token_id == token_id
    assert session.pump() == []


def test_next_tokens_that_cannot_be_computed_raise(session, client):
    _, answer = chat(session, client, "one", "abc")
    asked = session.tokens.next_tokens(answer, 0)
    client.write("", finish=FinishReason.ERROR)
    with pytest.raises(EngineUnavailable, match="the step failed"):
        asked.poll()
