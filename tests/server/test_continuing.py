"""Chats whose last message the model continues, and variables for the chat template."""

import json

import httpx
import pytest

from engine.text.chat_template import CHATML
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

USER = {"role": "user", "content": "hi"}
BEGUN = {"role": "assistant", "content": "The answer"}
HEAD = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
OPEN = HEAD + "The answer"
CLOSED = OPEN + "<|im_end|>\n"
ANSWERED = CLOSED + "<|im_start|>assistant\n"

THINKING = CHATML.replace(
    "'<|im_start|>assistant\\n'",
    "'<|im_start|>assistant\\n' + ('' if enable_thinking | default(true) else '<think></think>')"
    " + (reasoning_effort or '')",
)


@pytest.fixture(scope="module")
def engine():
    return ScriptedEngine(words("ok"))


@pytest.fixture(scope="module")
def scripted(engine):
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        yield client


@pytest.fixture(scope="module")
def http():
    with (
        byte_engine() as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


def ask(client, messages, **fields):
    return client.post("/v1/chat/completions", json={"model": "toy", "messages": messages} | fields)


def prompt_of(client, engine, messages, **fields):
    response = ask(client, messages, **fields)
    assert response.status_code == 200, response.text
    request = engine.requests[-1]
    text = engine.tokenizer.decode(request.prompt_ids, skip_special=False)
    return text, request.continued_tokens


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({}, OPEN),
        ({"continue_final_message": True}, OPEN),
        ({"continue_final_message": True, "add_generation_prompt": False}, OPEN),
        ({"add_generation_prompt": False}, OPEN),
        ({"add_generation_prompt": True}, ANSWERED),
        ({"continue_final_message": False}, ANSWERED),
        ({"continue_final_message": False, "add_generation_prompt": True}, ANSWERED),
        ({"continue_final_message": False, "add_generation_prompt": False}, CLOSED),
    ],
)
def test_a_last_message_of_the_assistant_begins_the_answer_unless_told_otherwise(
    scripted, engine, fields, prompt
):
    begun = len("The answer") if prompt == OPEN else 0
    assert prompt_of(scripted, engine, [USER, BEGUN], **fields) == (prompt, begun)
    body = {"messages": [USER, BEGUN]} | fields
    assert scripted.post("/apply-template", json=body).json()["prompt"] == prompt
    tokens = scripted.post("/tokenize", json=body).json()["tokens"]
    assert engine.tokenizer.decode(tokens, skip_special=False) == prompt


@pytest.mark.parametrize(
    ("prefix", "fields", "prompt"),
    [
        (True, {}, OPEN),
        (True, {"add_generation_prompt": False}, OPEN),
        (False, {}, ANSWERED),
        (True, {"continue_final_message": False}, ANSWERED),
    ],
)
def test_the_member_prefix_says_the_same_of_its_message(scripted, engine, prefix, fields, prompt):
    text, _ = prompt_of(scripted, engine, [USER, BEGUN | {"prefix": prefix}], **fields)
    assert text == prompt


@pytest.mark.parametrize("content", ["", None, []])
def test_a_message_without_text_begins_the_answer_with_nothing(scripted, engine, content):
    last = {"role": "assistant", "content": content}
    assert prompt_of(scripted, engine, [USER, last]) == (HEAD, 0)
    assert prompt_of(scripted, engine, [USER, last], continue_final_message=True) == (HEAD, 0)


def test_a_message_of_the_user_is_continued_on_demand(scripted, engine):
    text, begun = prompt_of(scripted, engine, [USER], continue_final_message=True)
    assert (text, begun) == ("<|im_start|>user\nhi", 2)


def test_fields_that_contradict_each_other_are_refused(scripted):
    fields = {"continue_final_message": True, "add_generation_prompt": True}
    response = ask(scripted, [USER, BEGUN], **fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "continue_final_message"


def completed(http, **fields):
    body = {"model": "toy", "prompt": OPEN, "continued_tokens": len("The answer")}
    return http.post("/v1/completions", json=body | fields).json()["choices"][0]


def test_the_answer_is_that_of_a_completion_of_the_same_text(http):
    fields = {"max_tokens": 12, "seed": 3, "ignore_eos": True, "frequency_penalty": 0.5}
    choice = ask(http, [USER, BEGUN], **fields).json()["choices"][0]
    assert choice["message"]["content"] == completed(http, **fields)["text"]
    assert not choice["message"]["content"].startswith("The answer")


def test_a_stream_with_logprobs_has_only_the_rest(http):
    fields = {"max_tokens": 6, "seed": 3, "ignore_eos": True, "logprobs": True}
    whole = ask(http, [USER, BEGUN], **fields).json()
    text, tokens = "", 0
    body = {"model": "toy", "messages": [USER, BEGUN], "stream": True} | fields
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                (choice,) = json.loads(line[6:])["choices"]
                text += choice["delta"].get("content") or ""
                tokens += len((choice["logprobs"] or {"content": ()})["content"])
    assert text == whole["choices"][0]["message"]["content"]
    assert tokens == len(whole["choices"][0]["logprobs"]["content"]) == 6
    assert whole["usage"]["completion_tokens"] == 6


def test_the_answer_matches_its_format_together_with_the_beginning(http):
    form = {"guided_regex": "The answer is [0-9]{2}!"}
    choice = ask(http, [USER, BEGUN], max_tokens=20, **form).json()["choices"][0]
    text = choice["message"]["content"]
    assert text.startswith(" is ")
    assert text[4:6].isdecimal()
    refused = ask(http, [USER, BEGUN], guided_regex="[0-9]+")
    assert refused.status_code == 400


def test_a_stop_string_may_begin_in_the_beginning(http):
    bias = {str(ord("!")): 100}
    choice = ask(http, [USER, BEGUN], max_tokens=5, stop="answer!!", logit_bias=bias).json()[
        "choices"
    ][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "stop")


def test_a_continued_answer_reuses_the_prefix_cache(http):
    message = {"role": "assistant", "content": "A long beginning of an answer. " * 4}
    ask(http, [USER, message], max_tokens=1)
    usage = ask(http, [USER, message], max_tokens=1).json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= 128


@pytest.fixture(scope="module")
def thinking():
    engine = ScriptedEngine(words("ok"), template=THINKING)
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        yield client, engine


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, ""),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "<think></think>"),
        ({"enable_thinking": False}, "<think></think>"),
        ({"enable_thinking": True}, ""),
        ({"enable_thinking": None, "chat_template_kwargs": None, "reasoning_effort": None}, ""),
        ({"reasoning_effort": "high"}, "high"),
        ({"reasoning_effort": "none"}, "<think></think>none"),
        ({"reasoning_effort": "none", "enable_thinking": True}, "none"),
        ({"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "max"}}, "max"),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, "low"),
        ({"reasoning": {"enabled": False, "max_tokens": 9}}, "<think></think>"),
        ({"reasoning": {"effort": "none"}, "reasoning_effort": "low"}, "low"),
        ({"chat_template_kwargs": {"messages": [], "add_generation_prompt": False}}, ""),
    ],
)
def test_variables_reach_a_template_that_reads_them(thinking, fields, written):
    client, engine = thinking
    assert prompt_of(client, engine, [USER], **fields)[0] == HEAD + written
    rendered = client.post("/apply-template", json={"messages": [USER], **fields}).json()["prompt"]
    assert rendered == HEAD + written
    ids = client.post("/tokenize", json={"messages": [USER], **fields}).json()["tokens"]
    assert tuple(ids) == engine.requests[-1].prompt_ids


def test_variables_have_no_effect_on_a_template_that_does_not(scripted, engine):
    fields = {
        "reasoning_effort": "high",
        "enable_thinking": True,
        "chat_template_kwargs": {"enable_thinking": True, "documents": ["x"]},
    }
    assert prompt_of(scripted, engine, [USER], **fields) == (HEAD, 0)


@pytest.mark.parametrize(
    "value", ["<|im_end|>", ["a", {"b": "<|im_start|>system"}], {"<|im_end|>": 1}]
)
def test_a_variable_cannot_inject_a_control_token(scripted, value):
    response = ask(scripted, [USER], chat_template_kwargs={"x": value})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "chat_template_kwargs"


REASONING = CHATML.replace(
    "message['content'] +", "'(' + (message.reasoning_content or '') + ')' + message['content'] +"
)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "()No."),
        ({"content": None, "refusal": "No."}, "()No."),
        ({"content": "Yes.", "refusal": None}, "()Yes."),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "Yes."},
                ]
            },
            "(Hm.)Yes.",
        ),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": "Yes."},
                ]
            },
            "(Hm.)Yes.",
        ),
        ({"content": "Yes.", "reasoning_content": "Hm."}, "(Hm.)Yes."),
        ({"content": "Yes.", "reasoning": "Hm."}, "(Hm.)Yes."),
        ({"content": "Yes.", "reasoning_content": "<|im_end|>"}, "(<|im_end|>)Yes."),
    ],
)
def test_forms_of_other_servers_answers_in_the_history(message, text):
    engine = ScriptedEngine(words("ok"), template=REASONING)
    messages = [USER, {"role": "assistant"} | message, USER]
    with live(engine) as server, httpx.Client(base_url=server.url) as client:
        prompt, _ = prompt_of(client, engine, messages)
        assert "x-pravaha-ignored-fields" not in ask(client, messages).headers
    assert f"<|im_start|>assistant\n{text}<|im_end|>" in prompt
    assert engine.tokenizer.control_tokens.select(engine.requests[-1].prompt_ids).count(258) == 3
