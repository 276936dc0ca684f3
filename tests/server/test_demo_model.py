"""`pravaha --serve` with the demo model: what needs a real model."""

import asyncio
import json
import signal

import httpx
import openai
import pytest

from tests.server.byte_engine import wait_until
from tests.server.process import pravaha_process

ASK = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def served(demo_model):
    with pravaha_process(demo_model, "--ctx", "1024", "--kv-cache", "256MiB") as server:
        yield server
        server.signal(signal.SIGTERM)
        assert server.exit_status() == 0


@pytest.fixture(scope="module")
def api(served):
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def name(api):
    model = api.models.list().data[0]
    return model.id


def test_sigterm_in_mid_answer_lets_it_finish(demo_model):
    fields = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 500}
    with pravaha_process(demo_model, "--ctx", "1024", "--kv-cache", "64MiB") as server:
        name = httpx.get(f"{server.url}/v1/models").json()["data"][0]["id"]
        body = fields | {
            "model": name,
            "stream": True,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        url = f"{server.url}/v1/completions"
        with httpx.stream("POST", url, json=body, timeout=300) as response:
            lines = (line.removeprefix("data: ") for line in response.iter_lines() if line)
            events = [next(lines)]
            server.signal(signal.SIGTERM)
            while httpx.get(f"{server.url}/ready").status_code == 200:
                pass
            refused = httpx.post(url, json=body)
            waiting = int(refused.headers["retry-after"])
            events += lines
        assert server.exit_status() == 0
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "shutting_down")
    assert waiting > 0
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert choices[-1]["finish_reason"] == "length"
    assert sum(len(choice["token_ids"]) for choice in choices) == 500


def test_it_knows_the_capital_of_france(api, name):
    prompt = "The capital of France is"
    answer = api.completions.create(model=name, prompt=prompt, temperature=0, max_tokens=8)
    assert "Paris" in answer.choices[0].text


def test_streamed_and_whole_chats_are_the_same(api, name):
    fields = {"model": name, "messages": ASK, "temperature": 0, "max_tokens": 40}
    whole = api.chat.completions.create(**fields)
    streamed = api.chat.completions.create(**fields, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed)
    assert text == whole.choices[0].message.content


def test_the_chat_template_is_the_models_own(served, api, name):
    prompt = httpx.post(f"{served.url}/apply-template", json={"messages": ASK}).json()["prompt"]
    ids = httpx.post(
        f"{served.url}/tokenize",
        json={"prompt": prompt, "parse_special": True, "add_special_tokens": False},
    ).json()["tokens"]
    tokens = httpx.post(f"{served.url}/tokenize", json={"messages": ASK}).json()["tokens"]
    assert tokens == ids
    fields = {"model": name, "temperature": 0, "max_tokens": 20}
    raw = api.completions.create(**fields, prompt=ids).choices[0].text
    chat = api.chat.completions.create(**fields, messages=ASK).choices[0].message.content
    assert raw == chat


def test_decisions_point_the_right_way(api, name):
    question = {"type": "predicate", "instructions": "The writer is happy."}
    shares = []
    for text in ("I love it, thank you so much!", "I hate it, it is terrible and broken!"):
        (answer,) = api.decisions.create(model=name, input=text, questions=[question]).answers
        shares.append(answer.probability)
    assert shares[0] > 0.5 > shares[1]


def test_text_in_another_script_survives_streaming(api, name):
    question = [{"role": "user", "content": "Repeat: प्रवाह 日本語 🙂👩‍👩‍👧"}]
    fields = {"model": name, "messages": question, "temperature": 0, "max_tokens": 48}
    whole = api.chat.completions.create(**fields).choices[0].message.content
    chunks = api.chat.completions.create(**fields, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole


def test_seeds_replay(api, name):
    fields = {"model": name, "messages": ASK, "temperature": 1, "max_tokens": 24, "seed": 5, "n": 2}
    first = [choice.message.content for choice in api.chat.completions.create(**fields).choices]
    again = [choice.message.content for choice in api.chat.completions.create(**fields).choices]
    assert first == again
    assert len(set(first)) == 2


async def test_thirty_two_streams_of_which_half_disconnect(served, name):
    # A loaded machine may take long to accept 32 connections; the default gives it 5 s.
    timeout = httpx.Timeout(600, connect=120)
    async with openai.AsyncOpenAI(
        base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=timeout
    ) as client:

        async def stream(number):
            answer = await client.chat.completions.create(
                model=name,
                messages=[{"role": "user", "content": f"Count to {number}."}],
                max_tokens=16,
                temperature=0,
                stream=True,
                extra_body={"ignore_eos": True},
            )
            finish = None
            async for chunk in answer:
                finish = chunk.choices[0].finish_reason
                if number % 2 and chunk.choices[0].delta.content:
                    await answer.close()
                    return None
            return finish

        finishes = await asyncio.gather(*(stream(number) for number in range(32)))
    assert finishes[::2] == ["length"] * 16

    def quiet():
        snapshot = httpx.get(f"{served.url}/snapshot").json()["snapshot"]
        counts = snapshot["running"], snapshot["waiting"], snapshot["blocks"]["active"]
        return counts == (0, 0, 0)

    await asyncio.to_thread(wait_until, quiet)
