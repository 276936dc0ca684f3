# /// script
# requires-python = ">=3.11"
# dependencies = ["langchain-anthropic==1.7.10"]
# ///
"""LangChain's Anthropic model against a server: `python langchain_anthropic_client.py http://127.0.0.1:8000`.

Prints a line for each check and exits with 1 if one fails. `call` and `typed` need a model that calls tools.
"""

import os
import sys
from collections.abc import Callable

from checks import Checks
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

URL = sys.argv[1].rstrip("/")
MODEL = ChatAnthropic(
    model_name="claude-sonnet-4-5",
    base_url=URL,
    api_key=os.environ.get("PRAVAHA_API_KEY", "none"),
    max_retries=0,
    max_tokens_to_sample=200,
    timeout=600,
)


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}, 21 degrees."


class City(BaseModel):
    """A city."""

    name: str


def invoke() -> None:
    """A whole answer with its usage."""
    answer = MODEL.invoke([SystemMessage("Be brief."), HumanMessage("Say hello.")])
    assert answer.text
    usage = answer.usage_metadata
    assert usage is not None
    assert usage["input_tokens"] > 0
    assert usage["output_tokens"] > 0
    assert answer.response_metadata["stop_reason"] in ("end_turn", "max_tokens")


def stream() -> None:
    """A streamed answer whose usage is counted once."""
    ask = "Say hello, please."
    whole = MODEL.invoke(ask).usage_metadata
    chunks = list(MODEL.stream(ask))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert total.text
    assert total.usage_metadata is not None
    assert whole is not None
    assert total.usage_metadata["input_tokens"] == whole["input_tokens"], (total, whole)


def count() -> None:
    """Tokens of a conversation."""
    assert MODEL.get_num_tokens_from_messages([HumanMessage("Say hello.")]) > 0


def call() -> None:
    """A call, its result, and the answer after it."""
    bound = MODEL.bind_tools([get_weather], tool_choice="get_weather")
    asked = HumanMessage("What is the weather in Rome?")
    answer = bound.invoke([asked])
    (made,) = answer.tool_calls
    assert made["name"] == "get_weather"
    result = ToolMessage(get_weather.invoke(made["args"]), tool_call_id=made["id"])
    after = MODEL.bind_tools([get_weather]).invoke([asked, answer, result])
    assert isinstance(after, AIMessage)


def typed() -> None:
    """An answer of a class."""
    city = MODEL.with_structured_output(City).invoke("Rome is a city. Which one is it?")
    assert isinstance(city, City)


CHECKS: list[Callable[[], None]] = [invoke, stream, count, call, typed]


if __name__ == "__main__":
    sys.exit(Checks("langchain-anthropic 1.7.10").run(CHECKS))
