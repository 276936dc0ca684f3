# /// script
# requires-python = ">=3.11"
# dependencies = ["llama-index-llms-openai-like==0.8.1"]
# ///
"""LlamaIndex against a server: `python clients/llama_index_client.py http://127.0.0.1:8000`."""

import asyncio
import sys

from agent_task import served_model
from checks import Checks
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"12 degrees and rain in {city}"


ASKED = [ChatMessage(role="user", content="What is the weather in Aarhus?")]
HELLO = [ChatMessage(role="user", content="Say hello.")]


def main(url: str) -> int:
    checks = Checks("llama-index-llms-openai-like 0.8.1")
    model = OpenAILike(
        model=served_model(url), api_base=f"{url}/v1", api_key="none", is_chat_model=True,
        is_function_calling_model=True, context_window=8192, temperature=0, max_tokens=120, timeout=600,
        max_retries=0,
    )  # fmt: skip
    tool = FunctionTool.from_defaults(get_weather)
    with checks.check("chat, and its usage"):
        answer = model.chat(HELLO)
        assert answer.message.content
        assert answer.raw.usage.total_tokens > 0
    with checks.check("chat, streamed"):
        pieces = [*model.stream_chat(HELLO)]
        assert len(pieces) > 1
        assert pieces[-1].message.content == "".join(one.delta for one in pieces)
    with checks.check("completion, by the chat"):
        assert model.complete("Say hello.").text
    with checks.check("completion, by /v1/completions"):
        plain = OpenAILike(**model.model_dump() | {"api_key": "none", "is_chat_model": False})
        assert plain.complete("Once upon a").text
    with checks.check("typed output"):
        found = model.as_structured_llm(City).complete("Rome is in Italy.").raw
        assert found.city == "Rome", found
    with checks.check("a call"):
        answer = model.chat_with_tools([tool], chat_history=ASKED)
        (call,) = model.get_tool_calls_from_response(answer)
        assert call.tool_kwargs == {"city": "Aarhus"}
    with checks.check("an agent calls a tool and reads its result"):

        async def run() -> str:
            agent = FunctionAgent(tools=[tool], llm=model)
            return str(await agent.run("What is the weather in Aarhus?"))

        assert "12" in asyncio.run(run())
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
