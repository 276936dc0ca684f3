# /// script
# requires-python = ">=3.11"
# dependencies = ["litellm==1.110.2"]
# ///
"""litellm's chat completions against a server: `python clients/litellm_chat.py http://127.0.0.1:8000`.

Also its text completions, and its providers for Ollama, vLLM and llama.cpp.
"""

import asyncio
import json
import sys

import litellm
from agent_task import served_model
from checks import Checks
from pydantic import BaseModel
from weather_tool import WEATHER


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


HELLO = [{"role": "user", "content": "Say hello."}]
ASKED = [{"role": "user", "content": "What is the weather in Aarhus?"}]


def main(url: str) -> int:
    checks = Checks("litellm 1.110.2, chats")
    name = served_model(url)
    target = {
        "model": f"openai/{name}",
        "api_base": f"{url}/v1",
        "api_key": "none",
        "max_retries": 0,
    }
    options = target | {"temperature": 0, "max_tokens": 80, "timeout": 600}
    with checks.check("an answer and its usage"):
        answer = litellm.completion(messages=HELLO, **options)
        assert answer.choices[0].message.content
        assert answer.usage.completion_tokens > 0
    with checks.check("streamed, put together by litellm"):
        wanted = {"include_usage": True}
        chunks = [
            *litellm.completion(messages=HELLO, stream=True, stream_options=wanted, **options)
        ]
        whole = litellm.stream_chunk_builder(chunks)
        assert whole.choices[0].message.content
        assert whole.usage.completion_tokens > 0
    with checks.check("asynchronous, eight at once"):

        async def eight() -> list[str]:
            asked = [litellm.acompletion(messages=HELLO, **options) for _ in range(8)]
            return [one.choices[0].message.content for one in await asyncio.gather(*asked)]

        assert all(asyncio.run(eight()))
    with checks.check("a call, and an answer from its result"):
        message = litellm.completion(messages=ASKED, tools=[WEATHER], **options).choices[0].message
        (call,) = message.tool_calls
        assert "Aarhus" in json.loads(call.function.arguments)["city"]
        result = {"role": "tool", "tool_call_id": call.id, "content": "12 degrees, rain"}
        turns = [*ASKED, message, result]
        answer = litellm.completion(messages=turns, tools=[WEATHER], **options)
        assert "12" in answer.choices[0].message.content
    with checks.check("a call, streamed and put together by litellm"):
        chunks = [*litellm.completion(messages=ASKED, tools=[WEATHER], stream=True, **options)]
        (call,) = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls
        assert "Aarhus" in json.loads(call.function.arguments)["city"]
    with checks.check("typed output by a schema"):
        asked = [{"role": "user", "content": "Which city is the capital of Italy?"}]
        answer = litellm.completion(messages=asked, response_format=City, **options)
        assert City.model_validate_json(answer.choices[0].message.content).city == "Rome"
    with checks.check("text completion"):
        answer = litellm.text_completion(
            **target | {"model": f"text-completion-openai/{name}"},
            prompt="Once upon a",
            max_tokens=8,
        )
        assert answer.choices[0].text
    with checks.check("Ollama's chat"):
        own = options | {"model": f"ollama_chat/{name}", "api_base": url}
        assert litellm.completion(messages=HELLO, **own).choices[0].message.content
    with checks.check("the provider for vLLM"):
        own = options | {"model": f"hosted_vllm/{name}"}
        assert litellm.completion(messages=HELLO, **own).choices[0].message.content
    with checks.check("the provider for llama.cpp's server"):
        own = options | {"model": f"llamafile/{name}"}
        assert litellm.completion(messages=HELLO, **own).choices[0].message.content
    with checks.check("a prompt that is too long is recognised as such"):
        try:
            litellm.completion(messages=[{"role": "user", "content": "word " * 300_000}], **target)
        except litellm.ContextWindowExceededError:
            pass
        else:
            raise AssertionError("it was answered")
    with checks.check("an unknown model is a NotFoundError"):
        try:
            litellm.completion(messages=HELLO, **options | {"model": "openai/no-such-model"})
        except litellm.NotFoundError:
            pass
        else:
            raise AssertionError("it was answered")
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
