# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic-ai-slim[openai]==2.68.0"]
# ///
"""pydantic-ai's chats and Responses: `python clients/pydantic_ai_client.py http://127.0.0.1:8000`."""

import asyncio
import sys

from agent_task import served_model
from checks import Checks
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


OUTPUTS = {"a tool": ToolOutput, "a schema": NativeOutput, "the prompt": PromptedOutput}
QUESTION = "Which city is the capital of Italy?"


def main(url: str) -> int:
    checks = Checks("pydantic-ai 2.68.0")
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="none")
    name = served_model(url)
    settings = {"temperature": 0, "max_tokens": 120, "timeout": 600}
    for face, kind in (("chat", OpenAIChatModel), ("Responses", OpenAIResponsesModel)):
        model = kind(name, provider=provider)

        def agent(**more):
            return Agent(model, model_settings=settings, **more)  # noqa: B023 used at once

        with checks.check(f"{face}: an answer, its usage, and a second turn"):
            first = agent().run_sync("My name is Anna. Say hello.")
            assert first.usage.output_tokens > 0
            again = agent().run_sync("What is my name?", message_history=first.all_messages())
            assert "Anna" in again.output
        with checks.check(f"{face}: streamed text"):

            async def stream():
                async with agent().run_stream("Count from 1 to 5.") as result:
                    return [text async for text in result.stream_text(debounce_by=None)]

            pieces = asyncio.run(stream())
            assert len(pieces) > 1
            assert "5" in pieces[-1]
        for way, output in OUTPUTS.items():
            with checks.check(f"{face}: typed output by {way}"):
                found = agent(output_type=output(City)).run_sync(QUESTION).output
                assert found.city == "Rome", found
        with checks.check(f"{face}: a tool is called and its result read"):
            asked = []
            weather = agent()

            @weather.tool_plain
            def get_weather(city: str) -> str:
                """The weather in a city."""
                asked.append(city)  # noqa: B023 used at once
                return "12 degrees, rain"

            answer = weather.run_sync("What is the weather in Aarhus?").output
            assert asked == ["Aarhus"], asked
            assert "12" in answer, answer
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
