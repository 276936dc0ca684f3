"""Answers: streamed, saved, limited, stopped, and waiting for a model."""

import json

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.api.request import FinishReason, SamplingParams
from engine.api.snapshot import EngineState
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import ALTERNATING, EOS, ToyClient
from tests.unit.conversations.talking import shape


def test_an_answer_streams_into_the_path(session, client):
    session.messages.send("hello")
    assert session.answers.generating
    client.write("hi")
    assert [(d.text, d.status) for d in session.pump()] == [("hi", NodeStatus.STREAMING)]
    client.write(" there", eos=True)
    (delta,) = session.pump()
    assert (delta.text, delta.status, delta.finish) == (" there", NodeStatus.DONE, "stop")
    assert not session.answers.generating
    assert shape(session) == [("user", "hello", "done"), ("assistant", "hi there", "done")]


@pytest.mark.parametrize(("limit", "finish"), [(2, "length"), (3, "context_full")])
def test_an_answer_that_ends_before_its_own_limit_filled_the_context(
    store, client, clock, limit, finish
):
    sampling = SamplingChoice(SamplingParams(max_tokens=limit))
    session = TreeSession(store, client, clock=clock, sampling=sampling)
    session.messages.send("hello")
    client.write("ab", finish=FinishReason.LENGTH)
    (delta,) = session.pump()
    assert (delta.status, delta.finish) == (NodeStatus.DONE, finish)


def test_an_answer_that_repeats_itself_is_stopped_and_kept(session, client, store):
    session.messages.send("hello")
    client.write("begin ")
    session.pump()
    assert client.cancelled == []
    client.write("again " * 60)
    session.pump()
    session.pump()
    assert client.cancelled == [client.requests[-1].request_id]
    client.write("again ", finish=FinishReason.ABORT)
    (delta,) = session.pump()
    assert (delta.status, delta.finish) == (NodeStatus.STOPPED, "repetition")
    store.writes.flush()
    assert store.nodes.get(store.trees.head(session.tree_id)).finish == "repetition"


@pytest.mark.parametrize(
    ("parameters", "given", "limit"),
    [(135_000_000, None, 1024), (7_000_000_000, None, None), (135_000_000, 5000, 5000)],
)
def test_answers_of_small_models_have_a_limit_by_default(
    store, client, clock, parameters, given, limit
):
    client.parameters = parameters
    sampling = SamplingChoice(SamplingParams(max_tokens=given))
    session = TreeSession(store, client, clock=clock, sampling=sampling)
    session.messages.send("hello")
    assert client.requests[-1].sampling.max_tokens == limit
    store.writes.flush()
    stored = json.loads(store.nodes.get(store.trees.head(session.tree_id)).sampling)
    assert stored["max_tokens"] == limit  # what was used, not what was asked for


def test_an_answer_of_a_small_model_may_have_no_limit(store, client, clock):
    client.parameters = 135_000_000
    sampling = SamplingChoice(SamplingParams(), frozenset({"max_tokens"}))
    session = TreeSession(store, client, clock=clock, sampling=sampling)
    session.messages.send("hello")
    assert client.requests[-1].sampling.max_tokens is None


@pytest.mark.parametrize("loading", [False, True])
def test_answers_use_the_models_defaults_where_nothing_is_chosen(store, client, clock, loading):
    client.generation_defaults = GenerationDefaults(temperature=0.9, top_k=5, dry_multiplier=0.5)
    client.state = EngineState.LOADING if loading else EngineState.READY
    chosen = SamplingChoice(SamplingParams(temperature=0.4, top_p=0.8), frozenset({"temperature"}))
    session = TreeSession(store, client, clock=clock, sampling=chosen)
    session.messages.send("hello")
    session.pump()
    client.state = EngineState.READY
    session.pump()
    (request,) = client.requests
    used = request.sampling
    assert (used.temperature, used.top_k, used.top_p, used.dry_multiplier) == (0.4, 5, 0.8, 0.5)
    client.write("a", eos=True)
    session.pump()
    store.writes.flush()
    stored = json.loads(store.nodes.get(store.trees.head(session.tree_id)).sampling)
    assert (stored["temperature"], stored["top_k"], stored["dry_multiplier"]) == (0.4, 5, 0.5)


def test_repetition_may_be_allowed(store, client, clock):
    session = TreeSession(store, client, clock=clock, stop_repetition=False)
    session.messages.send("hello")
    client.write("again " * 60)
    session.pump()
    assert client.cancelled == []


def test_pump_without_new_output_returns_nothing(session, client):
    assert session.pump() == []
    session.messages.send("hello")
    assert session.pump() == []


def test_a_finished_answer_is_saved_with_its_timings(session, client, store):
    session.messages.send("hello")
    ids = client.write("abba", eos=True, cached=7)
    session.pump()
    store.writes.flush()
    node = store.nodes.get(store.trees.head(session.tree_id))
    assert node.token_ids == ids
    assert node.n_cached == 7
    assert ids[-1] == EOS
    assert node.logprobs == (-0.5,) * len(ids)
    assert (node.n_prompt, node.n_gen) == (len(client.requests[0].prompt_ids), len(ids))
    assert (node.ttft_us, node.decode_us) == (500_000, 1_000_000)
    assert (node.model, node.tokenizer) == ("toy", "toy-1")
    assert json.loads(node.sampling)["temperature"] == 0.2


def test_streaming_text_is_saved_at_most_twice_a_second(session, client, store, clock):
    session.messages.send("hello")

    def saved():
        store.writes.flush()
        return store.nodes.get(store.trees.head(session.tree_id)).text

    client.write("a")
    session.pump()
    assert saved() == ""
    clock.now = 0.5
    client.write("b")
    session.pump()
    assert saved() == "ab"
    clock.now = 0.9
    client.write("c")
    session.pump()
    assert saved() == "ab"
    clock.now = 1.0
    session.pump()
    assert saved() == "abc"


def test_stop_keeps_the_text(session, client, store):
    session.messages.send("hello")
    client.write("half an ans")
    session.pump()
    session.answers.stop()
    assert client.cancelled == [client.requests[0].request_id]
    client.write("", finish=FinishReason.ABORT)
    session.pump()
    store.writes.flush()
    node = store.nodes.get(store.trees.head(session.tree_id))
    assert (node.text, node.status, node.finish) == ("half an ans", NodeStatus.STOPPED, "abort")


def test_after_an_engine_error_the_conversation_can_continue(session, client):
    session.messages.send("hello")
    client.write("so f", finish=FinishReason.ERROR)
    (delta,) = session.pump()
    assert (delta.status, delta.error) == (NodeStatus.ERROR, "the step failed")
    assert session.path()[-1].error == "the step failed"
    session.messages.send("again")
    assert session.answers.generating


def test_close_keeps_the_partial_answer(session, client, store):
    session.messages.send("hello")
    client.write("par")
    session.pump()
    client.write("tial")
    session.close()
    session.close()
    node = store.nodes.get(store.trees.head(session.tree_id))
    assert (node.text, node.status) == ("partial", NodeStatus.STOPPED)


def test_a_conversation_longer_than_the_context_is_refused_and_says_what_to_do(store):
    client = ToyClient(context_length=100)
    session = TreeSession(store, client)
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    with pytest.raises(InvalidRequest, match="start a new conversation"):
        session.messages.send("x y " * 20)
    assert len(session.path()) == 2
    assert len(client.requests) == 1


def test_a_queued_message_that_is_refused_shows_as_a_failed_answer(store):
    client = ToyClient(context_length=100)
    session = TreeSession(store, client)
    session.messages.send("hello")
    session.messages.send("x y " * 40)
    client.write("hi", eos=True)
    deltas = session.pump()
    assert deltas[-1].status is NodeStatus.ERROR
    assert "The message alone has" in deltas[-1].error
    session.pump()
    assert not session.answers.generating
    assert session.path()[-1].status is NodeStatus.ERROR
    store.writes.flush()


def test_a_message_sent_while_the_model_loads_waits_for_it(session, client):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    assert session.answers.generating
    assert session.pump() == []
    client.state = EngineState.READY
    session.pump()
    assert len(client.requests) == 1
    client.write("hi", eos=True)
    session.pump()
    assert session.path()[-1].text == "hi"


def test_a_message_sent_while_the_model_is_changed_waits_for_the_next_one(session, client):
    client.next_model, client.state = "other", EngineState.DRAINING
    client.refuse = EngineUnavailable("The engine is changing its model.")
    session.messages.send("hello")
    client.state = EngineState.LOADING
    assert session.pump() == []
    assert session.answers.generating
    client.next_model, client.state, client.refuse = None, EngineState.READY, None
    session.pump()
    assert len(client.requests) == 1


def test_a_queued_message_waits_for_the_next_model(session, client):
    session.messages.send("hello")
    session.messages.send("and then")
    client.next_model, client.state = "other", EngineState.DRAINING
    client.refuse = EngineUnavailable("The engine is changing its model.")
    client.write("hi", eos=True)
    session.pump()
    assert session.answers.generating
    assert session.messages.queued == ()
    client.next_model, client.state, client.refuse = None, EngineState.READY, None
    session.pump()
    assert len(client.requests) == 2


def test_stopping_before_the_request_is_submitted(session, client, store):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    session.answers.stop()
    (delta,) = session.pump()
    assert delta.status is NodeStatus.STOPPED
    assert not session.answers.generating
    store.writes.flush()


def test_what_was_sent_during_a_load_that_fails_waits_for_another_model(session, client):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    session.messages.send("and then")
    client.state = EngineState.UNLOADED
    client.refuse = EngineUnavailable("The model could not be loaded.")
    assert session.pump() == []
    session.answers.stop()
    session.pump()  # the queued message follows, and waits, too
    assert session.answers.generating
    assert session.path()[-2].text == "and then"
    client.state, client.refuse = EngineState.READY, None
    session.pump()
    client.write("hi", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["hello", "", "and then", "hi"]


def test_a_new_message_is_refused_while_no_model_is_loaded(session, client):
    client.state = EngineState.UNLOADED
    client.refuse = EngineUnavailable("The model could not be loaded.")
    with pytest.raises(EngineUnavailable):
        session.messages.send("hello")
    assert session.path() == []


def test_an_engine_that_fails_fails_the_waiting_answer(session, client):
    client.state = EngineState.LOADING
    session.messages.send("hello")
    client.state = EngineState.FAILED
    client.refuse = EngineUnavailable("The model could not be loaded.")
    (delta,) = session.pump()
    assert (delta.status, delta.error) == (NodeStatus.ERROR, "The model could not be loaded.")


def test_empty_answers_are_omitted_unless_the_template_requires_them(store):
    for template, empty in ((None, False), (ALTERNATING, True)):
        client = ToyClient(template) if template else ToyClient()
        session = TreeSession(store, client, resume=False)
        session.messages.send("one")
        client.write("", finish=FinishReason.ABORT)
        session.pump()
        session.messages.send("two")
        text = client.detokenize(client.requests[-1].prompt_ids, skip_special=False)
        assert ("<|im_start|>assistant\n<|im_end|>" in text) is empty
        session.close()
