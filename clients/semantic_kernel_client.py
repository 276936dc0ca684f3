# /// script
# requires-python = ">=3.11"
# dependencies = ["semantic-kernel==1.45.0"]
# ///
"""Semantic Kernel against a server: `python clients/semantic_kernel_client.py http://127.0.0.1:8000`."""

import asyncio
import sys
from typing import Annotated, Any

from agent_task import served_model
from checks import Checks
from openai import AsyncOpenAI
from pydantic import BaseModel
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.functions import KernelArguments, kernel_function


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


class Weather:
    """A plug-in with one function."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @kernel_function(name="get_weather", description="The weather in a city.")
    def get_weather(self, city: Annotated[str, "its name"]) -> str:
        """The weather in a city."""
        self.asked.append(city)
        return "12 degrees, rain"


def main(url: str) -> int:
    checks = Checks("semantic-kernel 1.45.0")
    name = served_model(url)

    def agent(plugins: "list[Any] | None" = None, **settings: Any) -> ChatCompletionAgent:
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", timeout=600, max_retries=0)
        own = OpenAIChatPromptExecutionSettings(temperature=0, max_tokens=120, **settings)
        return ChatCompletionAgent(
            service=OpenAIChatCompletion(ai_model_id=name, async_client=client),
            name="Assistant", instructions="Be brief.", plugins=plugins or [],
            arguments=KernelArguments(settings=own),
        )  # fmt: skip

    def ask(one: ChatCompletionAgent, text: str, thread: Any = None) -> Any:
        return asyncio.run(one.get_response(messages=text, thread=thread))

    with checks.check("two turns"):
        thread = ChatHistoryAgentThread()
        ask(agent(), "My name is Anna.", thread)
        assert "Anna" in str(ask(agent(), "What is my name?", thread))
    with checks.check("streamed"):

        async def stream() -> list[str]:
            return [str(one.message) async for one in agent().invoke_stream("Say hello.")]

        pieces = asyncio.run(stream())
        assert len(pieces) > 1
        assert "".join(pieces)
    with checks.check("a tool is called and its result read"):
        weather = Weather()
        answer = str(ask(agent([weather]), "What is the weather in Aarhus?"))
        assert weather.asked[0] == "Aarhus", weather.asked
        assert "12" in answer, answer
    with checks.check("typed output"):
        answer = str(ask(agent(response_format=City), "Which city is the capital of Italy?"))
        assert City.model_validate_json(answer).city == "Rome"
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
