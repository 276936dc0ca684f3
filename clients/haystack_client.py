# /// script
# requires-python = ">=3.11"
# dependencies = ["haystack-ai==3.4.1"]
# ///
"""Haystack's chats and Responses: `python clients/haystack_client.py http://127.0.0.1:8000`."""

import os
import sys
from typing import Annotated

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from agent_task import served_model
from checks import Checks
from haystack.components.agents import Agent
from haystack.components.generators.chat import (
    OpenAIChatGenerator,
    OpenAIResponsesChatGenerator,
)
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret
from pydantic import BaseModel


class City(BaseModel):
    """A city and its country."""

    city: str
    country: str


@tool
def get_weather(city: Annotated[str, "its name"]) -> str:
    """The weather in a city."""
    return f"12 degrees and rain in {city}"


HELLO = [ChatMessage.from_user("Say hello.")]
ASKED = [ChatMessage.from_user("What is the weather in Aarhus?")]
CAPITAL = [ChatMessage.from_user("Which city is the capital of Italy?")]


def main(url: str) -> int:
    checks = Checks("haystack-ai 3.4.1")
    for face, kind, limit, form in (
        ("chat", OpenAIChatGenerator, "max_completion_tokens", "response_format"),
        ("Responses", OpenAIResponsesChatGenerator, "max_output_tokens", "text_format"),
    ):

        def generator(**more):
            return kind(  # noqa: B023 used at once
                api_key=Secret.from_token("none"), model=served_model(url), api_base_url=f"{url}/v1",
                generation_kwargs={"temperature": 0, limit: 120, **more.pop("settings", {})},  # noqa: B023
                timeout=600, max_retries=0, **more,
            )  # fmt: skip

        with checks.check(f"{face}: an answer and its usage"):
            (answer,) = generator().run(HELLO)["replies"]
            assert answer.text
            assert answer.meta["usage"]["total_tokens"] > 0
        with checks.check(f"{face}: streamed"):
            pieces = []
            (answer,) = generator(streaming_callback=pieces.append).run(HELLO)["replies"]
            assert len(pieces) > 1
            assert answer.text
        with checks.check(f"{face}: typed output"):
            (answer,) = generator(settings={form: City}).run(CAPITAL)["replies"]
            assert City.model_validate_json(answer.text).city == "Rome"
        with checks.check(f"{face}: an agent calls a tool and reads its result"):
            agent = Agent(chat_generator=generator(), tools=[get_weather], max_agent_steps=4)
            assert "12" in agent.run(ASKED)["last_message"].text
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
