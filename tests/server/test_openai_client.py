"""The official client against the real engine with the toy executor, whose bytes are deterministic."""

import asyncio

import openai
import pytest

from tests.server.byte_engine import is_quiet, wait_until
from tests.server.toy_tokenizer import IM_END

ASK = [{"role": "user", "content": "Say something."}]


@pytest.fixture(scope="module")
def api(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def chat(api, *, extra=None, **fields):
    """An answer of exactly 12 tokens, unless told otherwise."""
    defaults = {"model": "toy", "messages": ASK, "max_tokens": 12, "temperature": 0}
    extra = {"ignore_eos": True} | (extra or {})
    return api.chat.completions.create(**defaults | fields, extra_body=extra)


def joined(chunks):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_whole_and_streamed_answers_are_the_same(api):
    whole = chat(api)
    chunks = list(chat(api, stream=True))
    assert whole.choices[0].message.content
    assert joined(chunks) == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert whole.choices[0].message.role == chunks[0].choices[0].delta.role == "assistant"
    assert whole.system_fingerprint == chunks[0].system_fingerprint


def test_usage_is_what_was_computed(api, engine):
    prompt = [{"role": "user", "content": "a prompt that nobody else sends"}]
    before = engine.snapshot().totals
    answer = chat(api, messages=prompt)
    stream = chat(api, messages=prompt, stream=True, stream_options={"include_usage": True})
    *_, last = stream
    assert last.choices == []
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [getattr(last.usage, name) for name in counts] == [
        getattr(answer.usage, name) for name in counts
    ]
    cached = [usage.prompt_tokens_details.cached_tokens for usage in (answer.usage, last.usage)]
    assert cached[0] < cached[1] < answer.usage.prompt_tokens
    assert answer.usage.completion_tokens == 12
    totals = engine.snapshot().totals
    assert totals.generation_tokens - before.generation_tokens == 24
    computed = totals.prompt_tokens - before.prompt_tokens
    assert computed + sum(cached) == 2 * answer.usage.prompt_tokens
    assert totals.prefix_cache_hits - before.prefix_cache_hits == sum(cached)


def test_choices_of_a_prompt_compute_it_once(api, engine):
    before = engine.snapshot().totals
    prompt = [{"role": "user", "content": "choose between " + "these " * 12}]
    answer = chat(api, messages=prompt, n=4, temperature=1.0)
    totals = engine.snapshot().totals
    assert len({choice.message.content for choice in answer.choices}) == 4
    length, found = (
        answer.usage.prompt_tokens,
        answer.usage.prompt_tokens_details.cached_tokens,
    )
    # Each choice but the first computes the last token again, to sample from its logits, or all of
    # the last block if it reaches the engine a step later.
    again = totals.prompt_tokens - before.prompt_tokens - (length - found)
    assert 3 <= again <= 3 * engine.config.block_size
    assert found < length


def test_seeds_replay_and_choices_differ(api):
    sampled = {"temperature": 1.0, "seed": 7, "n": 3}
    first, again = chat(api, **sampled), chat(api, **sampled)
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in again.choices]
    assert len(set(texts)) == 3
    assert [choice.index for choice in first.choices] == [0, 1, 2]
    alone = chat(api, temperature=1.0, seed=7)
    assert alone.choices[0].message.content == texts[0]
    other = chat(api, temperature=1.0, seed=8)
    assert other.choices[0].message.content != texts[0]


def test_streamed_choices_equal_whole_ones(api):
    sampled = {"temperature": 1.0, "seed": 7, "n": 3}
    whole = chat(api, **sampled)
    texts = ["", "", ""]
    for chunk in chat(api, stream=True, **sampled):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == [choice.message.content for choice in whole.choices]


def test_a_stop_string_cuts_before_itself(api):
    answer = chat(api, max_tokens=40).choices[0].message.content
    stop = answer[5:8]
    stopped = chat(api, max_tokens=40, stop=stop).choices[0]
    assert stopped.message.content == answer[: answer.index(stop)]
    assert stopped.finish_reason == "stop"
    assert joined(chat(api, max_tokens=40, stop=[stop], stream=True)) == stopped.message.content
    kept = chat(api, max_tokens=40, stop=stop, extra={"include_stop_str_in_output": True})
    assert kept.choices[0].message.content == stopped.message.content + stop


def test_logit_bias_forces_and_stop_tokens_stop(api):
    forced = chat(api, logit_bias={"65": 100})
    assert forced.choices[0].message.content == "A" * 12
    ended = chat(api, logit_bias={str(IM_END): 100}, extra={"ignore_eos": False})
    assert ended.choices[0].finish_reason == "stop"
    assert ended.choices[0].message.content == ""
    stopped = chat(api, logit_bias={"66": 100}, extra={"stop_token_ids": [66]})
    assert stopped.choices[0].finish_reason == "stop"
    assert stopped.usage.completion_tokens == 1
    ignored = chat(api, logit_bias={str(IM_END): 100})
    assert ignored.choices[0].finish_reason == "length"


def test_logprobs_describe_every_token(api):
    answer = chat(api, logprobs=True, top_logprobs=3)
    entries = answer.choices[0].logprobs.content
    assert len(entries) == answer.usage.completion_tokens
    raw = b"".join(bytes(entry.bytes) for entry in entries)
    shown = raw.replace(b"<|im_end|>", b"").replace(b"<|endoftext|>", b"")
    assert shown.decode(errors="replace") == answer.choices[0].message.content
    for entry in entries:
        assert entry.logprob < 0
        assert len(entry.top_logprobs) == 3
        values = [top.logprob for top in entry.top_logprobs]
        assert values == sorted(values, reverse=True)
        assert entry.logprob == values[0]  # greedy takes the likeliest
    streamed = [
        entry
        for chunk in chat(api, logprobs=True, top_logprobs=3, stream=True)
        for choice in chunk.choices
        if choice.logprobs
        for entry in choice.logprobs.content
    ]
    assert streamed == entries


def test_logprobs_without_alternatives(api):
    entries = chat(api, logprobs=True).choices[0].logprobs.content
    assert [entry.top_logprobs for entry in entries] == [[]] * 12


def test_legacy_completions(api):
    fields = {"model": "toy", "prompt": "Once", "temperature": 0, "max_tokens": 10}
    fields["extra_body"] = {"ignore_eos": True}
    whole = api.completions.create(**fields, logprobs=2)
    (choice,) = whole.choices
    arrays = choice.logprobs
    assert len(arrays.tokens) == len(arrays.token_logprobs) == len(arrays.text_offset) == 10
    assert all(len(top) == 2 for top in arrays.top_logprobs)
    assert arrays.text_offset[0] == 0
    assert arrays.text_offset == sorted(arrays.text_offset)
    streamed = api.completions.create(**fields, stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed) == choice.text
    batch = api.completions.create(**fields | {"prompt": ["Once", "Twice"]}, n=2)
    assert [one.index for one in batch.choices] == [0, 1, 2, 3]
    assert batch.choices[0].text == choice.text
    assert batch.usage.prompt_tokens == len("Once") + len("Twice")
    ids = api.completions.create(**fields | {"prompt": list(b"Once")})
    assert ids.choices[0].text == choice.text


def test_models(api):
    model = api.models.list().data[0]
    assert api.models.retrieve(model.id).id == "toy"
    with pytest.raises(openai.NotFoundError):
        api.models.retrieve("gpt-9")


def test_a_voice_is_accepted_for_an_answer_in_text(api):
    voice = {"format": "wav", "voice": "alloy"}
    answer = chat(api, audio=voice, modalities=["text"])
    assert answer.choices[0].message.audio is None
    with pytest.raises(openai.BadRequestError) as refused:
        chat(api, audio=voice, modalities=["text", "audio"])
    assert refused.value.param == "modalities"


def test_errors_arrive_as_the_clients_own(api):
    with pytest.raises(openai.BadRequestError) as refused:
        chat(api, modalities=["audio"])
    assert refused.value.param == "modalities"
    with pytest.raises(openai.NotFoundError) as missing:
        chat(api, model="gpt-9")
    assert missing.value.code == "model_not_found"


async def test_thirty_two_at_once_get_what_each_would_get_alone(api, server, engine):
    def fields(number):
        return {
            "model": "toy",
            "messages": [{"role": "user", "content": f"Question {number}: " + "x" * number}],
            "max_tokens": 5 + number % 7,
            "temperature": number % 3 / 2,
            "seed": number,
        }

    alone = [
        api.chat.completions.create(**fields(number)).choices[0].message.content
        for number in range(32)
    ]
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0
    ) as client:

        async def streamed(number):
            stream = await client.chat.completions.create(**fields(number), stream=True)
            return joined([chunk async for chunk in stream])

        async def whole(number):
            answer = await client.chat.completions.create(**fields(number))
            return answer.choices[0].message.content

        together = await asyncio.gather(
            *((streamed if number % 2 else whole)(number) for number in range(32))
        )
    assert together == alone
    wait_until(lambda: is_quiet(engine))
