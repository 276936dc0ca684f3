# /// script
# requires-python = ">=3.11"
# dependencies = ["anthropic==2.14.0"]
# ///
"""Anthropic's official client against a server: `python anthropic_sdk.py http://127.0.0.1:8000 [MODEL]`.

Prints a line for each check and exits with 1 if one fails. Old clients (1.x) are checked, too: what they lack
is left out.
"""

import asyncio
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import anthropic
from checks import Checks

URL = sys.argv[1].rstrip("/")
MODEL = sys.argv[2] if len(sys.argv) > 2 else "claude-opus-4-6"
KEY = os.environ.get("PRAVAHA_API_KEY", "none")
IS_OLD = int(anthropic.__version__.split(".")[0]) < 2

ASK: Any = [{"role": "user", "content": "Say hello."}]
WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}

TRANSPORT = {"extra_body", "extra_headers", "extra_query", "timeout", "betas"}
OBEYED: dict[str, Any] = {
    "cache_control": {"type": "ephemeral"},
    "max_tokens": 8,
    "messages": ASK,
    "model": MODEL,
    "output_config": {"effort": "low"},
    "stop_sequences": ["never"],
    "stream": False,
    "system": "Be brief.",
    "thinking": {"type": "adaptive"},
    "tool_choice": {"type": "auto"},
    "tools": [WEATHER],
}
WITHOUT_EFFECT: dict[str, Any] = {
    "billing_policy": {},
    "compaction": {},
    "container": "c",
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "diagnostics": {"previous_message_id": None},
    "fallback_credit_token": "t",
    "fallbacks": [],
    "inference_geo": "us",
    "mcp_servers": [{"type": "url", "url": "https://example.com/mcp", "name": "n"}],
    "metadata": {"user_id": "u"},
    "service_tier": "auto",
    "speed": "fast",
    "user_profile_id": "p",
    "workspace_id": "w",
}
"""What changes nothing; the server names it in a header."""

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=600)
CHECKS: list[Callable[[], None]] = []


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Register a check."""
    CHECKS.append(function)
    return function


def of_input(usage: Any) -> int:
    """All tokens of the prompt."""
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return int(usage.input_tokens + cached)


@check
def create() -> None:
    """A whole message."""
    message = client.messages.create(model=MODEL, max_tokens=16, messages=ASK)
    assert message.type == "message"
    assert message.role == "assistant"
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.content[0].type == "text"
    assert message.usage.output_tokens > 0
    assert message._request_id


@check
def older_members() -> None:
    """Sampling fields, which newer clients send only as extra members, and the usual system prompt."""
    message = client.messages.create(
        model=MODEL,
        max_tokens=8,
        messages=ASK,
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        metadata={"user_id": "u"},
        extra_body={"temperature": 0, "top_k": 40, "top_p": 0.9},
    )
    assert message.content


@check
def parameters() -> None:
    """Every parameter of the client is known, and none is refused but `thread`."""
    for method in (client.messages.create, client.beta.messages.create):
        names = inspect.signature(method).parameters.keys() - TRANSPORT - {"thread"}
        given = {**OBEYED, **WITHOUT_EFFECT}
        assert names <= given.keys(), names - given.keys()
    response = client.messages.with_raw_response.create(
        model=MODEL,
        max_tokens=8,
        messages=ASK,
        extra_body={**OBEYED, **WITHOUT_EFFECT},
    )
    named = response.headers["x-pravaha-without-effect"].split(",")
    assert set(named) == WITHOUT_EFFECT.keys(), named
    assert "x-pravaha-ignored-fields" not in response.headers


@check
def stop_sequence() -> None:
    """The stop sequence that ended the answer."""
    fields: Any = {
        "model": MODEL,
        "max_tokens": 32,
        "messages": ASK,
        "extra_body": {"temperature": 0},
    }
    text = client.messages.create(**fields).content[0].text
    stop = text[len(text) // 2]
    message = client.messages.create(**fields, stop_sequences=["never", stop])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)


@check
def stream() -> None:
    """The stream helper: texts as they arrive, and the message at the end."""
    with client.messages.stream(model=MODEL, max_tokens=16, messages=ASK) as streamed:
        text = "".join(streamed.text_stream)
        message = streamed.get_final_message()
    assert text
    assert text == message.content[0].text
    assert message.stop_reason
    assert message.usage.output_tokens > 0


@check
def raw_stream() -> None:
    """The events in their order."""
    kinds = [
        event.type
        for event in client.messages.create(model=MODEL, max_tokens=8, messages=ASK, stream=True)
    ]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]


@check
def asynchronous() -> None:
    """The asynchronous client."""

    async def ask() -> str:
        async with anthropic.AsyncAnthropic(base_url=URL, api_key=KEY) as other:
            message = await other.messages.create(model=MODEL, max_tokens=8, messages=ASK)
            return message.content[0].text

    assert asyncio.run(ask())


@check
def counts() -> None:
    """The count of a prompt is that of its message, and a second one finds it in the cache."""
    long: Any = [{"role": "user", "content": "Count. " + "one two three " * 60}]
    counted = client.messages.count_tokens(model=MODEL, messages=long).input_tokens
    first, second = (
        client.messages.create(model=MODEL, max_tokens=1, messages=long).usage for _ in range(2)
    )
    assert of_input(first) == of_input(second) == counted
    assert second.cache_read_input_tokens > 0


@check
def models() -> None:
    """The list of models, and one of them."""
    page = client.models.list()
    first = next(iter(page))
    assert first.type == "model"
    assert first.display_name
    assert first.created_at.year > 2000
    assert client.models.retrieve(first.id).id == first.id
    try:
        client.models.retrieve("claude-none")
    except anthropic.NotFoundError as error:
        assert error.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    else:
        raise AssertionError("a model that is not there was found")


@check
def errors() -> None:
    """Refusals are the exceptions of the client."""
    try:
        client.messages.create(model=MODEL, max_tokens=-1, messages=ASK)
    except anthropic.BadRequestError as error:
        assert "max_tokens" in str(error)
    else:
        raise AssertionError("max_tokens -1 was accepted")
    endless: Any = [{"role": "user", "content": "word " * 200_000}]
    for streams in (False, True):
        try:
            client.messages.create(model=MODEL, max_tokens=1, messages=endless, stream=streams)
        except anthropic.BadRequestError as error:
            assert "prompt is too long" in str(error)
        else:
            raise AssertionError("an endless prompt was accepted")


@check
def schema() -> None:
    """An answer that matches a schema."""
    if IS_OLD:
        return
    import pydantic

    class City(pydantic.BaseModel):
        """What to answer with."""

        name: str
        inhabitants: int

    message = client.messages.parse(
        model=MODEL,
        max_tokens=200,
        messages=[{"role": "user", "content": "Describe Rome in JSON."}],
        output_format=City,
    )
    assert message.parsed_output is not None
    assert message.parsed_output.name


@check
def tools() -> None:
    """A call, its result, and the answer after it; whole and streamed."""
    fields: Any = {
        "model": MODEL,
        "max_tokens": 200,
        "tools": [WEATHER],
        "extra_body": {"temperature": 0},
    }
    conversation: Any = [{"role": "user", "content": "What is the weather in Rome?"}]
    message = client.messages.create(
        **fields, messages=conversation, tool_choice={"type": "tool", "name": "get_weather"}
    )
    assert message.stop_reason == "tool_use", message
    (call,) = [one for one in message.content if one.type == "tool_use"]
    assert isinstance(call.input["city"], str)
    with client.messages.stream(
        **fields, messages=conversation, tool_choice={"type": "any"}
    ) as streamed:
        streamed_call = next(
            one for one in streamed.get_final_message().content if one.type == "tool_use"
        )
    assert streamed_call.input == call.input
    conversation += [
        {"role": "assistant", "content": message.content},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny, 21 degrees."}
            ],
        },
    ]
    answer = client.messages.create(**fields, messages=conversation)
    assert answer.content


@check
def tool_runner() -> None:
    """The helper that runs tools itself, with threads, which it asks for by default."""
    seen: list[str] = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: its name.
        """
        seen.append(city)
        return "Sunny, 21 degrees."

    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=200,
        max_iterations=3,
        tools=[get_weather],
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
        extra_body={"temperature": 0},
    )
    answers = list(runner)
    assert answers
    assert seen, answers


if __name__ == "__main__":
    sys.exit(Checks(f"anthropic {anthropic.__version__}").run(CHECKS))
