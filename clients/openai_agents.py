# /// script
# requires-python = ">=3.11"
# dependencies = ["openai-agents==0.20.0", "websockets==15.0.1"]
# ///
"""OpenAI's Agents SDK with its default model class, which uses Responses: `openai_agents.py URL [MODEL]`.

Prints a line for each check; the exit status is 1 if one failed.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from checks import Checks
from openai import AsyncOpenAI
from pydantic import BaseModel

from agents import (
    Agent,
    ModelSettings,
    Runner,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
    function_tool,
    set_default_openai_client,
    set_default_openai_responses_transport,
    set_tracing_disabled,
)

URL = sys.argv[1].rstrip("/")
KEY = os.environ.get("PRAVAHA_API_KEY", "none")
SHORT = ModelSettings(max_tokens=64, temperature=0)


class City(BaseModel):
    """Typed output."""

    name: str


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}."


async def answers(model: str) -> None:
    """An agent answers."""
    agent = Agent(name="a", model=model, instructions="Be brief.", model_settings=SHORT)
    assert (await Runner.run(agent, "Say hello.")).final_output


async def streams(model: str) -> None:
    """An agent's answer is streamed."""
    agent = Agent(name="a", model=model, instructions="Be brief.", model_settings=SHORT)
    result = Runner.run_streamed(agent, "Say hello.")
    kinds = [event.type async for event in result.stream_events()]
    assert "raw_response_event" in kinds
    assert result.final_output


async def types(model: str) -> None:
    """Typed output is validated."""
    agent = Agent(name="a", model=model, output_type=City, model_settings=SHORT)
    assert isinstance((await Runner.run(agent, "The capital of Italy?")).final_output, City)


async def calls(model: str) -> None:
    """A tool is called, and its result read; the first call is forced."""
    settings = ModelSettings(max_tokens=64, temperature=0, tool_choice="required")
    agent = Agent(name="a", model=model, tools=[get_weather], model_settings=settings)
    result = await Runner.run(agent, "The weather in Rome?", max_turns=4)
    kinds = [type(one).__name__ for one in result.new_items]
    assert "ToolCallOutputItem" in kinds, kinds
    assert result.final_output


async def runs_commands(model: str) -> None:
    """The shell tool runs what a forced call asks for, and its output is read."""
    commands: list[str] = []

    async def run(request: ShellCommandRequest) -> ShellResult:
        commands.extend(request.data.action.commands)
        outcome = ShellCallOutcome(type="exit", exit_code=0)
        return ShellResult(output=[ShellCommandOutput(stdout="notes.txt", outcome=outcome)])

    settings = ModelSettings(max_tokens=64, temperature=0, tool_choice="shell")
    agent = Agent(name="a", model=model, tools=[ShellTool(executor=run)], model_settings=settings)
    result = await Runner.run(agent, "List the files.", max_turns=4)
    assert commands
    assert result.final_output


async def over_websocket(model: str) -> None:
    """The same over a WebSocket."""
    set_default_openai_responses_transport("websocket")
    try:
        await answers(model)
        await calls(model)
    finally:
        set_default_openai_responses_transport("http")


CHECKS: list[Callable[[str], Awaitable[None]]] = [
    answers, streams, types, calls, runs_commands, over_websocket,
]  # fmt: skip


async def main() -> int:
    """Run the checks; the exit status."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=600)
    set_default_openai_client(client)
    model = sys.argv[2] if len(sys.argv) > 2 else (await client.models.list()).data[0].id
    checks = Checks("openai-agents 0.20.0")
    for one in CHECKS:
        with checks.check(one.__name__):
            await one(model)
    return checks.report()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
