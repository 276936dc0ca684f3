"""Answers with tools: whether one is called is decided as on the server, and they end in words."""

import json
import math
from concurrent.futures import Future

import pytest

from engine.api.errors import EngineUnavailable, QueueFull
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.api.tools import CallResult, CallState, Tool, ToolCall, ToolRound
from engine.conversations import submission
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeStatus
from engine.grammar.call_plan import NO_WORDS, WORDS
from engine.text.reasoning_markers import ReasoningMarkers, markers_of
from engine.text.tool_calls.decision import NO_CALL, NO_FURTHER_CALL, QUESTION
from engine.text.tool_calls.thresholds import CallThresholds, Threshold
from tests.fakes.chat_toys import ToyTokenizer
from tests.unit.conversations.talking import shape

READ = Tool(
    "read",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
MEASURED = CallThresholds(Threshold(1.0), Threshold(0.0), Threshold(math.log(0.5)))
REST = 'read", "arguments": {"path": "a.txt"}}\n</tool_call>'
CALL = '<tool_call>\n{"name": "' + REST


class Tools:
    """A `ToolSource` whose tools answer at once.

    Attributes:
        called: arguments of the calls that were made.
        may_call: what the rounds say, one after the other; True after them.
        closed: how often tools were closed.
    """

    form, decision = "auto", "auto"

    def __init__(self):
        self.called, self.may_call, self.closed = [], [], 0

    def open(self, tree_id, text, *, has_results):
        return self

    def offered(self):
        return done((READ,))

    def act(self, calls):
        self.called += [one.arguments for one in calls]
        results = [CallResult(one, "7 lines", CallState.OK) for one in calls]
        return done(ToolRound(results, self.may_call.pop(0) if self.may_call else True))

    def close(self):
        self.closed += 1


def done(value):
    future = Future()
    future.set_result(value)
    return future


@pytest.fixture
def tools():
    return Tools()


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(submission, "call_thresholds", lambda info, tokenizer: MEASURED)


@pytest.fixture
def session(store, client, clock, tools):
    session = TreeSession(store, client, clock=clock, tools=tools)
    yield session
    session.close()


def ask(session, client, text="How many lines?"):
    """Send a message and let its rows, or its answer, be submitted."""
    session.messages.send(text)
    session.pump()


def decide(session, client, *, call, digit=None, cached=0):
    """Answer the rows of a decision before the first call: the question and the name."""
    question, name = client.requests[-2:]
    counts = [math.log(0.9 if number == (digit if call else 0) else 1e-4) for number in range(10)]
    client.write("x", at=-2, scores=counts, finish=FinishReason.LENGTH, cached=cached)
    client.write("x", scores=[math.log(0.99 if call else 0.2)], finish=FinishReason.LENGTH)
    session.pump()
    return question, name


def decide_again(session, client, *, call):
    """Answer the row of a decision after a result."""
    count = len(client.requests[-1].sampling.logprob_token_ids)
    scores = [math.log(0.9 if call else 0.1)] + [-20.0] * (count - 1)
    client.write("x", scores=scores, finish=FinishReason.LENGTH)
    session.pump()


def prompt(client, at=-1):
    return client.detokenize(client.requests[at].prompt_ids, skip_special=False)


def answer(session, client, text):
    """Write an answer, and let its calls be made and the next answer be begun."""
    client.write(text, eos=True)
    for _ in range(4):
        session.pump()


def test_a_decided_call_is_begun_constrained_and_made(measured, session, client, tools):
    ask(session, client)
    assert [one.sampling.max_tokens for one in client.requests] == [1, 1]
    question, name = decide(session, client, call=True, digit=1)
    assert QUESTION in client.detokenize(question.prompt_ids)
    begun = client.requests[-1]
    assert begun.prompt_ids == name.prompt_ids
    assert begun.sampling.grammar.kind == "tool_calls"
    answer(session, client, REST)
    assert tools.called == ['{"path": "a.txt"}']
    assert [view.kind for view in session.path()][1:3] == [NodeKind.ASSISTANT, NodeKind.TOOL]


def test_a_call_is_read_and_not_shown_although_the_answer_was_looked_at_before(
    measured, session, client, tools
):
    session.messages.send("How many lines?")
    assert session.path()[-1].text == ""
    session.pump()
    assert session.path()[-1].text == ""
    decide(session, client, call=True, digit=1)
    client.write(REST[:10])
    session.pump()
    assert session.path()[-1].text == ""
    answer(session, client, REST[10:])
    assert tools.called == ['{"path": "a.txt"}']


def test_the_end_of_a_row_may_arrive_after_its_token(measured, session, client):
    ask(session, client)
    client.write("1", at=-2, scores=[-9.0, -0.1] + [-9.0] * 8)
    client.write("r", scores=[-0.01])
    session.pump()
    for at in (-2, -1):
        client.write("", at=at, finish=FinishReason.LENGTH)
    session.pump()
    assert client.requests[-1].sampling.grammar.kind == "tool_calls"


def test_the_call_is_stored_as_if_the_model_had_begun_it(measured, session, client, store):
    ask(session, client)
    decide(session, client, call=True, digit=1)
    ids = client.write(REST, eos=True)
    session.pump()
    store.writes.flush()
    node = store.nodes.get(session.path()[1].id)
    assert node.text == CALL
    assert node.n_gen == len(ids)
    assert node.token_ids == (*client.tokenizer.encode('<tool_call>\n{"name": "'), *ids)
    assert len(node.logprobs) == len(node.token_ids)
    assert json.loads(node.sampling)["grammar"] is None  # the schemas of tools are no parameters
    session.pump()
    session.pump()
    assert CALL in prompt(client)


def test_where_no_call_is_decided_words_are_asked_for(measured, session, client, tools):
    ask(session, client, "Hi, who are you?")
    decide(session, client, call=False)
    assert NO_CALL in prompt(client)
    assert client.requests[-1].sampling.grammar is None
    answer(session, client, "I am a model.")
    assert shape(session)[1:] == [("assistant", "I am a model.", "done")]
    assert (tools.called, tools.closed) == ([], 1)
    ask(session, client, "Thanks.")
    assert NO_CALL not in prompt(client)  # it was about that answer alone


def test_a_call_that_is_written_although_words_were_asked_for_is_made(
    measured, session, client, tools
):
    ask(session, client)
    decide(session, client, call=False)
    answer(session, client, CALL)
    assert len(tools.called) == 1


def test_after_a_result_it_is_decided_whether_another_call_follows(
    measured, session, client, tools
):
    ask(session, client)
    decide(session, client, call=True, digit=1)
    answer(session, client, REST)
    assert client.requests[-1].sampling.max_tokens == 1
    decide_again(session, client, call=True)
    assert NO_FURTHER_CALL not in prompt(client)
    answer(session, client, CALL.replace("a.txt", "b.txt"))
    decide_again(session, client, call=False)
    assert NO_FURTHER_CALL in prompt(client)
    answer(session, client, "Seven.")
    assert [view.kind.value for view in session.path()] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert session.path()[-1].text == "Seven."
    assert len(tools.called) == 2


def test_several_calls_are_asked_for_where_several_are_decided(measured, session, client, tools):
    ask(session, client)
    decide(session, client, call=True, digit=2)
    second = '<tool_call>\n{"name": "read", "arguments": {"path": "b.txt"}}\n</tool_call>'
    answer(session, client, f"{REST}\n{second}\n{second}")
    assert tools.called == ['{"path": "a.txt"}', '{"path": "b.txt"}']


@pytest.mark.parametrize("is_measured", [False, True])
def test_after_the_last_round_only_words_can_be_written(
    request, is_measured, session, client, tools
):
    if is_measured:
        request.getfixturevalue("measured")
    tools.may_call = [False]
    ask(session, client)
    if is_measured:
        decide(session, client, call=True, digit=1)
    answer(session, client, REST if is_measured else CALL)
    assert NO_FURTHER_CALL in prompt(client)
    assert client.requests[-1].sampling.grammar == WORDS
    answer(session, client, "Seven.")
    assert session.path()[-1].text == "Seven."
    assert not session.answers.running


def test_a_call_where_words_were_asked_for_is_not_shown(session, client, tools):
    tools.may_call = [False]
    ask(session, client)
    answer(session, client, CALL)
    answer(session, client, CALL)
    assert len(tools.called) == 1
    assert session.path()[-1].text == NO_WORDS
    assert not session.answers.running


def test_an_empty_answer_is_followed_by_words(session, client, tools):
    ask(session, client)
    answer(session, client, CALL)
    answer(session, client, "")
    assert client.requests[-1].sampling.grammar == WORDS
    answer(session, client, "Seven.")
    assert session.path()[-1].text == "Seven."
    ask(session, client, "Thanks.")
    assert client.requests[-1].sampling.grammar is None


def test_an_answer_that_only_thinks_is_followed_by_words(session, client, tools):
    client.markers = ReasoningMarkers("<think>", "</think>")
    ask(session, client)
    answer(session, client, "<think>hm</think>")
    assert client.requests[-1].sampling.grammar == WORDS
    answer(session, client, "Seven.")
    assert session.path()[-1].text == "Seven."
    assert not session.answers.running


def test_an_empty_answer_in_words_ends_it(session, client, tools):
    ask(session, client)
    answer(session, client, "")
    answer(session, client, "")
    assert session.path()[-1].text == NO_WORDS
    assert not session.answers.running


def test_the_user_may_leave_the_decision_to_the_model(measured, session, client, tools):
    tools.decision = "model"
    ask(session, client)
    assert len(client.requests) == 1
    assert not client.requests[-1].sampling.logprob_token_ids


def test_the_form_of_calls_can_be_chosen(session, client, tools):
    tools.form = "mistral-args"
    ask(session, client)
    answer(session, client, '[TOOL_CALLS]read[ARGS]{"path": "a.txt"}')
    assert tools.called == ['{"path": "a.txt"}']


def test_an_answer_that_is_stopped_before_the_decision_leaves_nothing_running(
    measured, session, client, tools
):
    ask(session, client)
    rows = [one.request_id for one in client.requests]
    session.answers.stop()
    session.pump()
    assert client.cancelled == rows
    assert session.path()[-1].status is NodeStatus.STOPPED
    assert tools.closed


def test_a_row_that_is_refused_ends_the_answer_with_the_reason(measured, session, client, tools):
    client.refuse = QueueFull("The queue is full.")
    ask(session, client)
    assert session.path()[-1].error == "The queue is full."
    assert not session.answers.running


def test_rows_that_fail_leave_the_decision_to_the_model(measured, session, client, tools):
    ask(session, client)
    for at in (-2, -1):
        client.write("", at=at, finish=FinishReason.ERROR)
    session.pump()
    assert not client.requests[-1].sampling.logprob_token_ids
    answer(session, client, "Hello.")
    assert session.path()[-1].text == "Hello."


@pytest.mark.parametrize("call", [False, True])
def test_the_figures_of_a_session_have_the_begun_call_and_not_the_note(
    measured, store, client, clock, tools, call
):
    answered = []
    session = TreeSession(
        store, client, clock=clock, tools=tools, on_answered=lambda *one: answered.append(one)
    )
    ask(session, client)
    decide(session, client, call=call, digit=1)
    sent = client.requests[-1].prompt_ids
    read = client.requests[0].prompt_ids
    generated = client.write(REST if call else "Seven.", eos=True)
    session.pump()
    _, prompt_ids, ids, _ = answered[0]
    assert ids == generated
    if call:
        assert prompt_ids == sent
    else:
        assert prompt_ids == sent[: len(prompt_ids)] == read[: len(prompt_ids)]
        assert NO_CALL not in client.detokenize(prompt_ids)
    session.close()


def test_what_was_cached_is_counted_before_the_rows(measured, session, client, store):
    ask(session, client)
    decide(session, client, call=False, cached=3)
    client.write("Hello.", eos=True, cached=40)
    session.pump()
    store.writes.flush()
    node = store.nodes.get(session.path()[-1].id)
    assert node.n_cached == 0  # the second row found nothing


def test_the_time_of_the_decision_is_a_part_of_the_time_to_the_first_token(
    measured, session, client, store, clock
):
    ask(session, client)
    clock.now += 2.0
    decide(session, client, call=False)
    answer(session, client, "Hello.")
    store.writes.flush()
    assert store.nodes.get(session.path()[-1].id).ttft_us == 2_500_000


def test_the_request_that_reads_the_prompt_is_the_answers_until_it_is_decided(
    measured, session, client
):
    ask(session, client)
    assert session.answers.request_id == client.requests[0].request_id
    decide(session, client, call=False)
    assert session.answers.request_id == client.requests[-1].request_id


def test_the_length_of_the_prompt_is_known_while_it_is_read(measured, session, client):
    ask(session, client)
    read = session.path()[-1].n_prompt
    decide(session, client, call=True, digit=1)
    assert read == session.path()[-1].n_prompt
    begun = client.tokenizer.encode('<tool_call>\n{"name": "')
    assert read == len(client.requests[-1].prompt_ids) - len(begun)


def test_calls_and_reasoning_in_messages_are_both_read(session, client, tools):
    client.markers = markers_of("<|channel|>")
    tools.form = "harmony"
    ask(session, client)
    thought = "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant"
    answer(
        session,
        client,
        thought
        + '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.txt"}<|call|>',
    )
    assert tools.called == ['{"path": "a.txt"}']
    assert [(view.text, view.reasoning) for view in session.path()][1] == ("", "hmm")
    answer(session, client, thought + "<|channel|>final<|message|>Seven.")
    assert (session.path()[-1].text, session.path()[-1].reasoning) == ("Seven.", "hmm")
    assert session.nodes.full(session.head).prompt_text == "Seven."


def test_a_grammar_of_words_begins_after_the_paragraph_that_ends_the_reasoning(
    session, client, tools
):
    client.markers = ReasoningMarkers("<think>", "</think>")
    tools.may_call = [False]
    ask(session, client)
    answer(session, client, CALL)
    sampling = client.requests[-1].sampling
    assert sampling.grammar == WORDS
    assert client.detokenize(sampling.reasoning.answer_ids) == "\n\n"


def test_a_begun_call_cannot_begin_to_reason(measured, session, client):
    client.markers = ReasoningMarkers("<think>", "</think>")
    ask(session, client)
    decide(session, client, call=True, digit=1)
    assert client.requests[-1].sampling.reasoning is None


def unavailable(*args, **options):
    raise EngineUnavailable("No model is loaded.")


@pytest.fixture
def made(tools):
    """The results of the calls, which the test gives."""
    made = Future()
    tools.act = lambda calls: made
    return made


RESULTS = ToolRound([CallResult(ToolCall("c", "read", "{}"), "7 lines", CallState.OK)], True)


def test_results_wait_for_a_model_that_went_away(session, client, made, monkeypatch):
    ask(session, client)
    answer(session, client, CALL)
    client.state = EngineState.UNLOADED
    with monkeypatch.context() as away:
        away.setattr(client, "tokenize", unavailable)
        made.set_result(RESULTS)
        session.pump()
        assert session.path()[-1].status is NodeStatus.STREAMING
    client.state = EngineState.READY
    session.pump()
    session.pump()
    assert "7 lines" in prompt(client)


def test_results_for_an_engine_that_failed_end_with_the_reason(
    session, client, tools, made, monkeypatch
):
    ask(session, client)
    answer(session, client, CALL)
    client.state = EngineState.FAILED
    monkeypatch.setattr(client, "tokenize", unavailable)
    made.set_result(RESULTS)
    session.pump()
    assert session.path()[-1].error == "No model is loaded."
    assert not session.answers.running
    assert tools.closed


def test_a_waiting_result_can_be_stopped(session, client, tools, made):
    ask(session, client)
    answer(session, client, CALL)
    client.state = EngineState.UNLOADED
    made.set_result(RESULTS)
    session.pump()
    session.answers.stop()
    session.pump()
    assert session.path()[-1].status is NodeStatus.STOPPED
    assert tools.closed


def test_another_model_decides_anew(measured, session, client, store):
    ask(session, client)
    client.tokenizer = ToyTokenizer("toy-2")
    decide(session, client, call=True, digit=1)
    assert len(client.requests) == 4  # the rows of the other model, and its own
    assert client.requests[-1].sampling.max_tokens == 1
    assert client.cancelled == []  # the first two have ended
    decide(session, client, call=False)
    answer(session, client, "Hello.")
    store.writes.flush()
    node = store.nodes.get(session.path()[-1].id)
    assert (node.text, node.tokenizer) == ("Hello.", "toy-2")


def test_a_model_that_is_loaded_anew_keeps_its_decision(measured, session, client):
    ask(session, client)
    client.state = EngineState.UNLOADED
    decide(session, client, call=True, digit=1)
    assert len(client.requests) == 2
    client.state = EngineState.READY
    session.pump()
    assert len(client.requests) == 3
    assert client.requests[-1].sampling.grammar.kind == "tool_calls"
