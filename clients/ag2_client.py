# /// script
# requires-python = ">=3.11"
# dependencies = ["ag2[openai,ollama]==1.2.1"]
# ///
"""AG2's chats, Responses and Ollama: `python clients/ag2_client.py http://127.0.0.1:8000`."""

import asyncio
import sys

from ag2 import Agent, tool
from ag2.config import OllamaConfig, OpenAIConfig, OpenAIResponsesConfig
from agent_task import served_model
from checks import Checks
from pydantic import BaseModel


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


def main(url: str) -> int:
    checks = Checks("ag2 1.2.1")
    name = served_model(url)
    own = {"model": name, "base_url": f"{url}/v1", "api_key": "none", "temperature": 0}
    for face, config in (
        ("chat", OpenAIConfig(**own, max_tokens=120)),
        ("chat, streamed", OpenAIConfig(**own, max_tokens=120, streaming=True)),
        ("Responses", OpenAIResponsesConfig(**own, max_output_tokens=120)),
        ("Ollama", OllamaConfig(model=name, host=url, temperature=0, max_tokens=120)),
    ):
        with checks.check(f"{face}: two turns"):

            async def talk() -> str | None:
                agent = Agent("a", prompt="Be brief.", config=config)  # noqa: B023 used at once
                first = await agent.ask("My name is Anna.")
                return (await first.ask("What is my name?")).body

            assert "Anna" in asyncio.run(talk())
        with checks.check(f"{face}: a tool is called and its result read"):
            asked = []

            @tool
            def get_weather(city: str) -> str:
                """The weather in a city."""
                asked.append(city)  # noqa: B023 used at once
                return "12 degrees, rain"

            agent = Agent("a", prompt="Be brief.", config=config, tools=[get_weather])
            answer = asyncio.run(agent.ask("What is the weather in Aarhus?"))
            assert asked[0] == "Aarhus", asked
            assert "12" in answer.body, answer.body
        with checks.check(f"{face}: typed output"):

            async def typed() -> City | None:
                agent = Agent("a", config=config, response_schema=City)  # noqa: B023 used at once
                return await (await agent.ask("Which city is the capital of Italy?")).content()

            assert asyncio.run(typed()).city == "Rome"
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
