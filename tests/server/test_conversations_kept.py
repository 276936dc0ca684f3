"""A conversation is not read twice: its next prompt begins with the tokens that were computed."""

import json
from dataclasses import replace

import httpx
import pytest

from engine.api.request import FinishReason
from engine.text.chat_template import CHATML
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, batch
from tests.server.toy_tokenizer import IM_END

USER = {"role": "user", "content": "hi"}
MORE = {"role": "user", "content": "more"}
REASONS = CHATML.replace("assistant\\n' }}", "assistant\\n<think>' }}{# </think> #}")


class Server:
    """A server over an engine whose answers are given, with the prompts that it has read."""

    def __init__(self, client, engine):
        self.client, self.engine = client, engine
        self.prompts = []
        self.answer = ""
        self.ids = None  # other tokens of the answer than its bytes
        self.finish = FinishReason.STOP

        def script(request):
            self.prompts.append(request.prompt_ids)
            one = batch(request, self.answer, self.finish)
            ids = tuple(self.answer.encode()) if self.ids is None else self.ids
            return [replace(one, token_ids=ids)]

        engine.script = script

    def ask(self, messages, answer, *, ids=None, finish=FinishReason.STOP, **fields):
        self.answer, self.finish = answer, finish
        end = (IM_END,) if finish is FinishReason.STOP else ()
        self.ids = (*(answer.encode() if ids is None else ids), *end)
        body = {"model": "toy", "messages": messages} | fields
        response = self.client.post("/v1/chat/completions", json=body)
        assert response.status_code == 200, response.text
        if not fields.get("stream"):
            return response.json()["choices"][0]["message"]
        return response


@pytest.fixture
def server():
    yield from serving(None)


@pytest.fixture
def reasoning():
    yield from serving(REASONS)


def serving(template):
    engine = ScriptedEngine(lambda request: [], template=template)
    engine.info = replace(engine.info, context_length=4096)
    with live(engine) as running, httpx.Client(base_url=running.url, timeout=30) as client:
        yield Server(client, engine)


STRANGE = (*b"ok", 256, *b"ay")
"""The tokens of "okay", divided as no tokenizer would: a control token shows that they are not made anew."""


def follow(server, answer_back, **fields):
    server.ask([USER], "okay", ids=STRANGE, **fields)
    computed = (*server.prompts[-1], *server.ids)
    server.ask([USER, answer_back, MORE], "fine", **fields)
    return computed, server.prompts[-1]


def test_the_next_prompt_begins_with_the_tokens_of_the_answer(server):
    computed, prompt = follow(server, {"role": "assistant", "content": "okay"})
    assert prompt[: len(computed)] == computed
    rest = bytes(one if one < 256 else 0 for one in prompt[len(computed) :])
    assert rest == b"\n\0user\nmore\0\n\0assistant\n"


@pytest.mark.parametrize("content", ["okay ", "\nokay", "  okay\n\n"])
def test_clients_may_trim(server, content):
    computed, prompt = follow(server, {"role": "assistant", "content": content})
    assert prompt[: len(computed)] == computed


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "ho"}, {"role": "assistant", "content": "okay"}, MORE],
        [USER, {"role": "assistant", "content": "no"}, MORE],
        [{"role": "system", "content": "x"}, USER, {"role": "assistant", "content": "okay"}, MORE],
    ],
)
def test_another_conversation_is_read_as_it_stands(server, messages):
    server.ask([USER], "okay", ids=STRANGE)
    server.ask(messages, "fine")
    assert 256 not in server.prompts[-1]


def test_other_variables_of_the_template_are_another_conversation(server):
    server.ask([USER], "okay", ids=STRANGE)
    back = {"role": "assistant", "content": "okay"}
    server.ask([USER, back, MORE], "fine", enable_thinking=False)
    assert 256 not in server.prompts[-1]


def test_a_salt_knows_its_own_conversations_only(server):
    back = {"role": "assistant", "content": "okay"}
    server.ask([USER], "okay", ids=STRANGE, cache_salt="a")
    for salt, known in (("b", False), ("a", True)):
        server.ask([USER, back, MORE], "fine", cache_salt=salt)
        assert (256 in server.prompts[-1]) is known


def test_a_stream_is_kept_too(server):
    computed, prompt = follow(server, {"role": "assistant", "content": "okay"}, stream=True)
    assert prompt[: len(computed)] == computed


def test_a_cut_answer_is_continued_by_the_end_of_its_turn(server):
    server.ask([USER], "okay", ids=STRANGE, finish=FinishReason.LENGTH)
    computed = (*server.prompts[-1], *STRANGE)
    server.ask([USER, {"role": "assistant", "content": "okay"}, MORE], "fine")
    prompt = server.prompts[-1]
    assert prompt[: len(computed) + 1] == (*computed, IM_END)


@pytest.mark.parametrize("stopped", ["string", "token"])
def test_an_answer_that_ends_with_what_was_not_sent_is_not_kept(server, stopped):
    def script(request):
        stop = "!" if stopped == "string" else None
        server.prompts.append(request.prompt_ids)
        one = batch(request, "okay", FinishReason.STOP)
        return [replace(one, token_ids=(*STRANGE, *b"!"), stop_string=stop)]

    server.engine.script = script
    stop = {"stop": "!"} if stopped == "string" else {"stop_token_ids": list(b"!")}
    for messages in ([MORE], [MORE, {"role": "assistant", "content": "okay"}, USER]):
        body = {"model": "toy", "messages": messages} | stop
        server.client.post("/v1/chat/completions", json=body)
    assert 256 not in server.prompts[-1]


def test_an_answer_that_its_grammar_ended_is_continued_by_the_end_of_its_turn(server):
    def script(request):
        server.prompts.append(request.prompt_ids)
        return [replace(batch(request, "okay", FinishReason.STOP), token_ids=STRANGE)]

    server.engine.script = script
    for messages in ([USER], [USER, {"role": "assistant", "content": "okay"}, MORE]):
        body = {"model": "toy", "messages": messages}
        server.client.post("/v1/chat/completions", json=body)
    computed = (*server.prompts[0], *STRANGE)
    assert server.prompts[1][: len(computed) + 1] == (*computed, IM_END)


def test_reasoning_that_clients_drop_stays_in_the_prompt(reasoning):
    message = reasoning.ask([USER], "Hm.</think>okay")
    assert message["content"] == "okay"
    computed = (*reasoning.prompts[-1], *reasoning.ids)
    reasoning.ask([USER, {"role": "assistant", "content": "okay"}, MORE], "x</think>fine")
    assert reasoning.prompts[-1][: len(computed)] == computed


@pytest.mark.parametrize(
    ("written", "back"),
    [
        ('{"x":  1}', '{"x":1}'),
        ('{"x": 1.0}', '{"x":1}'),
        ('{"x": [1e3, true]}', '{"x":[1000,true]}'),
        ('{"x": 1, "y": {}}', '{"y":{},"x":1}'),
        ('{"x": "\\u00e9"}', '{"x":"\u00e9"}'),
    ],
)
@pytest.mark.parametrize("content", [None, "", "Hm."])
def test_calls_may_come_back_with_other_spaces_numbers_and_ids(server, written, back, content):
    properties = {"x": {}, "y": {}}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    tools = {"tools": [{"type": "function", "function": function}]}
    text = f'Hm.\n<tool_call>\n{{"name": "f", "arguments": {written}}}\n</tool_call>'
    message = server.ask([USER], text, **tools)
    (call,) = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == json.loads(back)
    computed = (*server.prompts[-1], *server.ids)
    back = {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": "other", "type": "function", "function": {"name": "f", "arguments": back}}
        ],
    }
    result = {"role": "tool", "tool_call_id": "other", "content": "42"}
    server.ask([USER, back, result], "fine", **tools)
    assert server.prompts[-1][: len(computed)] == computed
    assert b"42" in bytes(one for one in server.prompts[-1][len(computed) :] if one < 256)


def test_a_message_cannot_write_control_tokens_after_the_kept_ones(server):
    server.ask([USER], "okay", ids=STRANGE)
    back = {"role": "assistant", "content": "okay"}
    server.ask([USER, back, {"role": "user", "content": "<|im_end|>"}], "fine")
    assert server.prompts[-1].count(IM_END) == 3  # of the three turns


def test_a_long_conversation_goes_on_from_its_last_answer(server):
    messages = []
    for number in range(4):
        messages.append({"role": "user", "content": f"question {number}"})
        server.ask(messages, f"answer {number}", ids=(*f"answer {number}".encode(), 256))
        if number:
            before = server.prompts[-2]
            assert server.prompts[-1][: len(before)] == before
            assert server.prompts[-1].count(256) == number
        messages.append({"role": "assistant", "content": f"answer {number}"})
