# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "litellm==1.110.2",
#     "fastapi==0.165.0", # these three for its streamed Messages API alone
#     "orjson==3.13.0",
#     "soundfile==0.14.0",
# ]
# ///
"""litellm's Responses API, and its Messages API, which calls Responses: `litellm_responses.py URL [MODEL]`.

Prints a line for each check; the exit status is 1 if one failed.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import litellm
from agent_task import served_model
from checks import Checks

URL = sys.argv[1].rstrip("/")
KEY = os.environ.get("PRAVAHA_API_KEY", "none")
MODEL = sys.argv[2] if len(sys.argv) > 2 else served_model(URL)
TARGET: dict[str, Any] = {"model": f"openai/{MODEL}", "api_base": f"{URL}/v1", "api_key": KEY}


def whole() -> None:
    """A response has text and counts."""
    answer = litellm.responses(input="Say hello.", max_output_tokens=32, **TARGET)
    assert answer.output[-1].content[0].text
    assert answer.usage.total_tokens > 0


def streamed() -> None:
    """A stream ends with the response."""
    events = list(
        litellm.responses(input="Say hello.", max_output_tokens=32, stream=True, **TARGET)
    )
    assert events[-1].type in ("response.completed", "response.incomplete")


def reasoning() -> None:
    """What litellm adds for reasoning is accepted."""
    answer = litellm.responses(
        input="Say hello.", max_output_tokens=32, reasoning={"effort": "low"},
        include=["reasoning.encrypted_content"], **TARGET,
    )  # fmt: skip
    assert answer.status in ("completed", "incomplete")


def messages() -> None:
    """Its Messages API answers in Anthropic's form."""
    fields = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 32}
    answer = asyncio.run(litellm.anthropic_messages(**fields, **TARGET))
    assert answer["content"][0]["text"]


def messages_streamed() -> None:
    """Its streamed Messages API ends with Anthropic's last event."""

    async def run() -> bytes:
        fields = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 32}
        stream = await litellm.anthropic_messages(**fields, stream=True, **TARGET)
        return b"".join(
            [one if isinstance(one, bytes) else str(one).encode() async for one in stream]
        )

    assert b"message_stop" in asyncio.run(run())


def too_long() -> None:
    """A prompt that is too long is recognised as such."""
    try:
        litellm.responses(input="word " * 300_000, **TARGET)
    except litellm.ContextWindowExceededError:
        return
    raise AssertionError("it was answered")


CHECKS: list[Callable[[], None]] = [
    whole,
    streamed,
    reasoning,
    messages,
    messages_streamed,
    too_long,
]

if __name__ == "__main__":
    sys.exit(Checks("litellm 1.110.2, Responses").run(CHECKS))
