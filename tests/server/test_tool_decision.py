"""`tool_choice: auto`: the decision by probabilities, in requests to a server with a scripted engine."""

import json
import math
from dataclasses import replace

import httpx
import pytest

from app.server.calls import prompts, tool_calling
from engine.text.tool_calls.decision import NO_CALL, NO_FURTHER_CALL, QUESTION
from engine.text.tool_calls.thresholds import CallThresholds, Threshold
from tests.server.byte_engine import wait_until
from tests.server.live import live, post_and_stay
from tests.server.scripted_engine import FinishReason, ScriptedEngine, batch

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
CHAT = {
    "model": "toy",
    "messages": [{"role": "user", "content": "Oslo?"}],
    "tools": [WEATHER],
}
MEASURED = CallThresholds(
    fits=Threshold(1.0), several=Threshold(0.0), again=Threshold(math.log(0.5))
)
REST = 'get_weather", "arguments": {"city": "Oslo"}}'
RESULT = [
    *CHAT["messages"],
    {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"},
]


class Model(ScriptedEngine):
    """Answers rows with probabilities, and other requests with a text.

    Attributes:
        digits: the probabilities of the numbers of calls.
        name: of a declared name.
        begins: after a result, of an answer that begins like a call.
    """

    def __init__(self):
        super().__init__(self.answer)
        self.info = replace(self.info, context_length=4096)
        self.digits, self.name, self.begins = {1: 0.9}, 0.99, 0.1
        self.text = REST + "\n</tool_call>"
        self.fails = False

    def answer(self, request):
        ids = request.sampling.logprob_token_ids
        if not ids:
            return [batch(request, self.text, FinishReason.STOP)]
        if self.fails:
            return [batch(request, "", FinishReason.ERROR, "no memory")]
        if len(ids) == 10:
            found = [self.digits.get(digit, 1e-4) for digit in range(10)]
        else:
            chance = self.name if len(ids) == 1 else self.begins
            found = [chance] + [1e-9] * (len(ids) - 1)
        row = batch(request, "x", FinishReason.LENGTH)
        return [replace(row, token_id_logprobs=(tuple(map(math.log, found)),))]

    def prompt(self, at=-1):
        return self.tokenizer.decode(self.requests[at].prompt_ids, skip_special=False)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(tool_calling, "call_thresholds", lambda info, tokenizer: MEASURED)
    return Model()


@pytest.fixture
def client(model):
    with live(model) as server, httpx.Client(base_url=server.url) as http:
        yield http


def ask(client, **fields):
    response = client.post("/v1/chat/completions", json=CHAT | fields)
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]


def calls_of(choice):
    return [
        (one["function"]["name"], json.loads(one["function"]["arguments"]))
        for one in choice["message"].get("tool_calls") or []
    ]


def test_a_decided_call_is_begun_and_constrained(client, model):
    choice = ask(client)
    assert calls_of(choice) == [("get_weather", {"city": "Oslo"})]
    assert choice["finish_reason"] == "tool_calls"
    assert model.prompt().endswith('<tool_call>\n{"name": "')
    assert model.requests[-1].sampling.grammar.kind == "tool_calls"
    assert len(model.requests) == 3  # two rows of one token, and the answer
    assert [one.sampling.max_tokens for one in model.requests[:2]] == [1, 1]


def test_an_irrelevant_tool_is_not_called_even_if_the_text_looks_like_a_call(client, model):
    model.digits = {0: 0.7, 1: 0.2}
    model.text = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    choice = ask(client)
    assert calls_of(choice) == []
    assert choice["message"]["content"] == model.text
    assert choice["finish_reason"] == "stop"
    assert NO_CALL in model.prompt()
    assert model.requests[-1].sampling.grammar is None


def test_an_undeclared_name_is_evidence_against_a_call(client, model):
    model.digits, model.name = {0: 0.3, 1: 0.7}, 0.2
    assert calls_of(ask(client)) == []


def test_several_calls_are_demanded_where_several_are_asked_for(client, model):
    model.digits = {1: 0.2, 2: 0.7}
    oslo, rome = REST, '{"name": "get_weather", "arguments": {"city": "Rome"}}'
    model.text = f"{oslo}\n</tool_call>\n<tool_call>\n{rome}\n</tool_call>"
    assert [arguments["city"] for _, arguments in calls_of(ask(client))] == ["Oslo", "Rome"]
    assert json.loads(model.requests[-1].sampling.grammar.source)["calls"] == [2, 2]


def test_a_call_that_is_repeated_to_reach_the_number_is_left_out(client, model):
    model.digits = {1: 0.2, 2: 0.7}
    again = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    model.text = f"{REST}\n</tool_call>\n<tool_call>\n{again}\n</tool_call>"
    assert calls_of(ask(client)) == [("get_weather", {"city": "Oslo"})]


def test_without_parallel_calls_one_is_made(client, model):
    model.digits = {2: 0.9}
    ask(client, parallel_tool_calls=False)
    assert json.loads(model.requests[-1].sampling.grammar.source)["calls"] == [1, 1]


def test_after_a_result_an_answer_is_asked_for(client, model):
    model.text = "It is cold."
    choice = ask(client, messages=RESULT)
    assert choice["message"]["content"] == "It is cold."
    assert NO_FURTHER_CALL in model.prompt()
    assert len(model.requests) == 2
    assert QUESTION not in model.prompt(0)


@pytest.mark.parametrize(
    "added",
    [
        {"role": "system", "content": "The list of tasks is empty."},
        {"role": "user", "content": "<system-reminder>No tasks.</system-reminder>"},
    ],
)
def test_what_a_client_adds_to_a_result_is_no_new_question(client, model, added):
    model.text = "It is cold."
    ask(client, messages=[*RESULT, added])
    assert NO_FURTHER_CALL in model.prompt()
    assert QUESTION not in model.prompt(0)


def test_after_a_result_the_user_may_ask_anew(client, model):
    assert calls_of(ask(client, messages=[*RESULT, *CHAT["messages"]])) != []
    assert QUESTION in model.prompt(0)


def test_after_a_result_the_model_may_call_again(client, model):
    model.begins, model.text = 0.9, '{"name": "get_weather", "arguments": {"city": "Rome"}}'
    assert calls_of(ask(client, messages=RESULT)) == [("get_weather", {"city": "Rome"})]
    assert NO_FURTHER_CALL not in model.prompt()


def test_a_call_that_was_made_twice_is_not_made_a_third_time(client, model):
    model.begins, model.text = 0.9, '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    twice = [*RESULT, *RESULT[1:]]
    assert calls_of(ask(client, messages=twice)) == []


def test_the_arguments_of_the_history_are_read_once(client, model, monkeypatch):
    read = []
    parse = prompts.arguments_of
    monkeypatch.setattr(prompts, "arguments_of", lambda given: read.append(given) or parse(given))
    model.text = "It is cold."
    ask(client, messages=RESULT)
    assert read == ['{"city": "Oslo"}']


def test_a_demanded_call_is_made_whatever_is_likely(client, model):
    model.digits = {0: 0.99}
    assert calls_of(ask(client, tool_choice="required")) == [("get_weather", {"city": "Oslo"})]
    named = {"type": "function", "function": {"name": "get_weather"}}
    assert calls_of(ask(client, tool_choice=named)) == [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize(
    "fields", [{"tool_decision": "model"}, {"tool_choice": "none"}, {"tools": []}]
)
def test_nothing_is_asked_where_nothing_is_decided(client, model, fields):
    ask(client, **fields)
    assert len(model.requests) == 1
    assert QUESTION not in model.prompt()


def test_a_server_can_leave_the_decision_to_the_model(model):
    with live(model, tool_decision="model") as server, httpx.Client(base_url=server.url) as client:
        ask(client)
        assert len(model.requests) == 1
        model.digits = {0: 0.9}
        assert calls_of(ask(client, tool_decision="auto")) == []
        assert len(model.requests) == 4


def test_a_model_that_was_not_measured_decides_itself(monkeypatch, client, model):
    monkeypatch.setattr(tool_calling, "call_thresholds", lambda info, tokenizer: None)
    model.text = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    assert calls_of(ask(client)) == [("get_weather", {"city": "Oslo"})]
    assert len(model.requests) == 1


def test_rows_that_fail_leave_the_decision_to_the_model(client, model):
    model.fails, model.text = True, "Hello"
    assert ask(client)["message"]["content"] == "Hello"


def test_a_streamed_call_arrives_in_pieces_that_join_to_json(client, model):
    model.script = lambda request: (
        Model.answer(model, request)
        if request.sampling.logprob_token_ids
        else [
            *(batch(request, piece) for piece in (REST[:5], REST[5:30], REST[30:])),
            batch(request, "\n</tool_call>", FinishReason.STOP),
        ]
    )
    name, arguments, finish = "", "", None
    with client.stream("POST", "/v1/chat/completions", json=CHAT | {"stream": True}) as response:
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            (choice,) = json.loads(line.removeprefix("data: "))["choices"]
            for call in choice["delta"].get("tool_calls", []):
                name += call["function"].get("name", "")
                arguments += call["function"]["arguments"]
            finish = choice["finish_reason"] or finish
    assert (name, json.loads(arguments), finish) == ("get_weather", {"city": "Oslo"}, "tool_calls")


def test_what_was_cached_is_counted_before_the_rows(client, model):
    before = model.script
    model.script = lambda request: [
        replace(one, cached_tokens=8 if request.sampling.logprob_token_ids else 40)
        for one in before(request)
    ]
    response = client.post("/v1/chat/completions", json=CHAT)
    usage = response.json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 8
    assert usage["prompt_tokens"] < len(model.requests[-1].prompt_ids)


def test_a_schema_that_cannot_be_enforced_is_named_in_a_header(client, model):
    built = model.build_grammar

    def build(grammar):
        done = built(grammar)
        done.result().not_enforced = ("get_weather:pattern",)
        return done

    model.build_grammar = build
    response = client.post("/v1/chat/completions", json=CHAT)
    assert response.headers["x-pravaha-not-enforced"] == "get_weather:pattern"


def test_the_schema_of_the_answer_and_that_of_a_tool_are_both_named(client, model):
    built = model.build_grammar

    def build(grammar):
        done = built(grammar)
        is_call = grammar.kind == "tool_calls"
        done.result().not_enforced = ("get_weather:not", "x:not") if is_call else ("uniqueItems",)
        return done

    model.build_grammar = build
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array"}}}
    response = client.post("/v1/chat/completions", json=CHAT | {"response_format": schema})
    names = response.headers["x-pravaha-not-enforced"].split(",")
    assert sorted(names) == ["get_weather:not", "uniqueItems", "x:not"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_before_the_decision_leaves_nothing_running(client, model, stream):
    model.script = lambda request: []  # nothing is computed
    body = CHAT | {"stream": stream}
    with post_and_stay(str(client.base_url), "/v1/chat/completions", body):
        wait_until(lambda: len(model.requests) == 2)  # the rows
    assert model.was_aborted.wait(30)
    assert {one.request_id for one in model.requests} >= set(model.aborted)
    assert len(model.requests) == 2  # no answer was begun
