"""Reasoning of chat answers: apart from the text, limited, ended on request, before a grammar."""

import json

import httpx
import pytest

from engine.text.chat_template import CHATML
from tests.fakes.family_templates import HARMONY
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

BEGUN = CHATML.replace("assistant\\n' }}", "assistant\\n<think>\\n' }}{# </think> #}")
OPTIONAL = CHATML + "{# </think> #}"
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["n"],
    "additionalProperties": False,
}
CLOSING = len("</think>")
"""Tokens of the marker: the vocabulary is one of bytes."""


@pytest.fixture(scope="module")
def http():
    with (
        byte_engine(template=BEGUN, step_s=0.002) as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        client.engine = engine
        yield client


def ask(client, **fields):
    body = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]} | fields
    return client.post("/v1/chat/completions", json=body)


def scripted(*texts, template=BEGUN, **fields):
    engine = ScriptedEngine(words(*texts), template=template)
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        return ask(client, **fields)


def chunks(response):
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_reasoning_stands_beside_the_text():
    message = scripted("Hm.\n", "</think>", "\n\nYes.").json()["choices"][0]["message"]
    assert message["content"] == "Yes."
    assert message["reasoning_content"] == message["reasoning"] == "Hm."


def test_a_stream_has_reasoning_before_text():
    deltas = [
        one["choices"][0]["delta"]
        for one in chunks(scripted("Hm", ".</th", "ink>", "Yes.", stream=True))
    ]
    assert deltas[0] == {"role": "assistant", "content": None}
    assert [one["reasoning_content"] for one in deltas if "reasoning_content" in one] == ["Hm", "."]
    assert [one["content"] for one in deltas[1:] if "content" in one] == ["Yes."]


@pytest.mark.parametrize(
    "fields", [{"reasoning_format": "none"}, {"separate_reasoning": False}], ids=str
)
def test_reasoning_can_stay_in_the_text(fields):
    message = scripted("Hm.</think>Yes.", **fields).json()["choices"][0]["message"]
    assert message["content"] == "Hm.</think>Yes."
    assert "reasoning_content" not in message


@pytest.mark.parametrize(
    "fields", [{"include_reasoning": False}, {"reasoning": {"exclude": True}}], ids=str
)
def test_reasoning_can_be_left_out(fields):
    message = scripted("Hm.</think>Yes.", **fields).json()["choices"][0]["message"]
    assert message["content"] == "Yes."
    assert "reasoning_content" not in message


HARMONY_ANSWER = (
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes."
)


@pytest.mark.parametrize("size", [1, 7, 200])
def test_harmony_without_tools_is_divided_too(size):
    pieces = [HARMONY_ANSWER[at : at + size] for at in range(0, len(HARMONY_ANSWER), size)]
    body = scripted(*pieces, template=HARMONY).json()
    message = body["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Hm.", "Yes.")
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] == len(
        HARMONY_ANSWER.partition("<|start|>")[0]
    )


def test_a_stream_of_harmony_has_reasoning_before_text():
    deltas = [
        one["choices"][0]["delta"]
        for one in chunks(scripted(HARMONY_ANSWER, template=HARMONY, stream=True))
    ]
    assert "".join(one.get("reasoning_content") or "" for one in deltas) == "Hm."
    assert "".join(one.get("content") or "" for one in deltas) == "Yes."


def test_an_answer_of_harmony_may_have_one_message_only():
    answer = "<|channel|>final<|message|>Yes."
    message = scripted(answer, template=HARMONY).json()["choices"][0]["message"]
    assert message["content"] == "Yes."
    assert not message.get("reasoning_content")


def test_the_reasoning_of_harmony_can_stay_in_the_text():
    message = scripted(HARMONY_ANSWER, template=HARMONY, reasoning_format="none").json()["choices"][
        0
    ]["message"]
    assert message["content"] == HARMONY_ANSWER


def test_a_budget_is_a_variable_of_the_template():
    template = CHATML + "{{ 'budget ' ~ thinking_budget if thinking_budget is defined }}</think>"
    engine = ScriptedEngine(words("Yes."), template=template)
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        for fields in ({"thinking_budget": 512}, {"reasoning": {"max_tokens": 512}}, {}):
            assert ask(client, **fields).status_code == 200
    prompts = [
        engine.tokenizer.decode(one.prompt_ids, skip_special=False) for one in engine.requests
    ]
    assert ["budget 512" in one for one in prompts] == [True, True, False]


def test_a_model_that_does_not_reason_keeps_its_text():
    message = scripted("<think>a</think>b", template=CHATML).json()["choices"][0]["message"]
    assert message["content"] == "<think>a</think>b"


def test_a_model_may_answer_without_reasoning():
    body = scripted("Yes.", template=OPTIONAL).json()
    assert body["choices"][0]["message"]["content"] == "Yes."
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


@pytest.mark.parametrize(
    "fields",
    [
        {"thinking_budget": 5},
        {"thinking_token_budget": 5},
        {"thinking_budget_tokens": 5},
        {"reasoning": {"max_tokens": 5}},
        {"thinking_budget": 5, "thinking_token_budget": -1},
    ],
    ids=str,
)
def test_a_budget_ends_the_reasoning(http, fields):
    body = ask(http, max_tokens=60, temperature=0, **fields).json()
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] == 5 + CLOSING
    assert body["usage"]["completion_tokens"] == 60


def test_a_format_begins_after_the_reasoning(http):
    fields = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    body = ask(http, max_tokens=80, temperature=0, thinking_budget=6, response_format=fields).json()
    choice = body["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert set(json.loads(choice["message"]["content"])) == {"n"}
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] == 6 + CLOSING


def test_a_budget_must_be_a_number_of_tokens(http):
    response = ask(http, thinking_budget=-2)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "thinking_budget"


def test_a_running_answer_can_be_told_to_end_its_reasoning(http):
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 400,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "reasoning_control": True,
        "stream_options": {"include_usage": True},
    }
    told, last = None, {}
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            last = json.loads(line[6:])
            delta = last["choices"][0]["delta"] if last["choices"] else {}
            if told is None and delta.get("reasoning_content"):
                told = http.post(
                    "/v1/chat/completions/control",
                    json={"id": last["id"], "action": "reasoning_end"},
                ).json()
    assert told["success"] is True
    assert CLOSING < last["usage"]["completion_tokens_details"]["reasoning_tokens"] < 400


def test_an_unknown_or_quiet_completion_cannot_be_told(http):
    control = {"id": "chatcmpl-none", "action": "reasoning_end"}
    response = http.post("/v1/chat/completions/control", json=control)
    assert response.status_code == 200
    assert response.json() == {"id": "chatcmpl-none", "action": "reasoning_end", "success": False}
    wrong = http.post("/v1/chat/completions/control", json={"id": "x", "action": "stop"})
    assert wrong.json()["error"]["param"] == "action"
