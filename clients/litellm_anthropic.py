# /// script
# requires-python = ">=3.11"
# dependencies = ["litellm==1.110.2"]
# ///
"""litellm's Anthropic provider against a server: `python litellm_anthropic.py http://127.0.0.1:8000`.

Prints a line for each check and exits with 1 if one fails. `call` needs a model that calls tools.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import litellm
from checks import Checks
from weather_tool import WEATHER

URL = sys.argv[1].rstrip("/")
FIELDS: dict[str, Any] = {
    "model": "anthropic/claude-sonnet-4-5",
    "api_base": URL,
    "api_key": os.environ.get("PRAVAHA_API_KEY", "none"),
    "max_retries": 0,
    "timeout": 600,
}
ASK: list[dict[str, Any]] = [{"role": "user", "content": "Say hello."}]


def completion() -> None:
    """A whole answer with its usage."""
    answer = litellm.completion(**FIELDS, messages=ASK, max_tokens=32, temperature=0)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0


def stream() -> None:
    """A streamed answer."""
    chunks = list(
        litellm.completion(
            **FIELDS,
            messages=ASK,
            max_tokens=32,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert any(one.choices and one.choices[0].finish_reason for one in chunks)
    assert chunks[-1].usage.prompt_tokens > 0


def messages() -> None:
    """Its own pass-through of the Messages API."""

    async def ask() -> Any:
        return await litellm.anthropic.messages.acreate(**FIELDS, messages=ASK, max_tokens=32)

    assert asyncio.run(ask())["content"]


def overflow() -> None:
    """A prompt that is too long is recognised."""
    endless = [{"role": "user", "content": "word " * 200_000}]
    try:
        litellm.completion(**FIELDS, messages=endless, max_tokens=1)
    except litellm.ContextWindowExceededError:
        return
    raise AssertionError("the prompt was accepted")


def call() -> None:
    """A call of a tool."""
    answer = litellm.completion(
        **FIELDS,
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
        max_tokens=200,
        tools=[WEATHER],
        tool_choice="required",
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.tool_calls[0].function.name == "get_weather"


CHECKS: list[Callable[[], None]] = [completion, stream, messages, overflow, call]


if __name__ == "__main__":
    sys.exit(Checks("litellm 1.110.2, Messages").run(CHECKS))
