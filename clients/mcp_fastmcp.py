# /// script
# requires-python = ">=3.11"
# dependencies = ["fastmcp==4.2.3", "mcp==2.3.0"]
# ///
"""fastmcp's client against `/mcp`, in both revisions: `python clients/mcp_fastmcp.py http://127.0.0.1:8000`."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from checks import Checks
from fastmcp import Client
from fastmcp.exceptions import ToolError
from mcp import MCPError

REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
TOOLS = {"chat", "complete", "decide", "embed", "search", "run_agent", "fork"}
Check = Callable[[Client[Any]], Awaitable[bool]]


async def lists_tools(client: Client[Any]) -> bool:
    """The tools are there, each with a schema of an object."""
    tools = await client.list_tools()
    return {one.name for one in tools} >= TOOLS and all(
        one.input_schema["type"] == "object" for one in tools
    )


async def chats(client: Client[Any]) -> bool:
    """A chat answers with text and counts."""
    result = await client.call_tool("chat", {"message": "Say hello.", "max_tokens": 16})
    return bool(result.structured_content["answer"]) and 0 < result.data.completion_tokens <= 16


async def completes(client: Client[Any]) -> bool:
    """A completion goes on with a text."""
    result = await client.call_tool("complete", {"prompt": "One, two,", "max_tokens": 4})
    return bool(result.data.answer)


async def decides(client: Client[Any]) -> bool:
    """A choice has a probability for each option."""
    given = {"question": "Which colour has the sky?", "kind": "choice", "options": ["blue", "red"]}
    result = await client.call_tool("decide", given)
    return abs(sum(result.structured_content["probabilities"].values()) - 1) < 1e-6


async def embeds(client: Client[Any]) -> bool:
    """Two texts have two vectors, or the tool says how to get the model."""
    try:
        result = await client.call_tool("embed", {"texts": ["a", "b"]})
    except ToolError as error:
        return "pravaha models add" in str(error)
    return len(result.structured_content["vectors"]) == 2


async def reports_progress(client: Client[Any]) -> bool:
    """A long call sends numbers that increase."""
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    given = {"message": "Count to fifty.", "max_tokens": 100, "temperature": 0}
    await client.call_tool("chat", given, progress_handler=on_progress)
    return len(seen) >= 1 and seen == sorted(set(seen))


async def refuses_with_a_sentence(client: Client[Any]) -> bool:
    """A misspelt argument is named, with the right one."""
    try:
        await client.call_tool("chat", {"mesage": "hi"})
    except ToolError as error:
        return "did you mean 'message'" in str(error)
    return False


async def reads_resources(client: Client[Any]) -> bool:
    """Every listed resource can be read; agents may be switched off."""
    for resource in await client.list_resources():
        try:
            (contents,) = await client.read_resource(resource.uri)
        except MCPError as error:
            if "runs no agents" not in str(error):
                raise
            continue
        if contents.mime_type == "application/json":
            json.loads(contents.text)
    return True


async def gets_prompts(client: Client[Any]) -> bool:
    """A prompt has its arguments in it."""
    prompts = {one.name for one in await client.list_prompts()}
    found = await client.get_prompt("second_opinion", {"question": "Why is it so?"})
    return "second_opinion" in prompts and "Why is it so?" in found.messages[0].content.text


async def cancels(client: Client[Any]) -> bool:
    """After a cancelled call the connection goes on."""
    call = client.call_tool("chat", {"message": "Tell a long story.", "max_tokens": 2000})
    running = asyncio.create_task(call)
    await asyncio.sleep(0.5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return bool(await client.list_tools())


CHECKS: tuple[Check, ...] = (
    lists_tools,
    chats,
    completes,
    decides,
    embeds,
    reports_progress,
    refuses_with_a_sentence,
    reads_resources,
    gets_prompts,
    cancels,
)


async def main(url: str) -> int:
    """All checks in both revisions; the exit status."""
    checks = Checks("fastmcp 4.2.3")
    for mode, revision in REVISIONS.items():
        async with Client(f"{url.removesuffix('/v1').rstrip('/')}/mcp", mode=mode) as client:
            with checks.check(f"{revision} negotiated"):
                assert client.protocol_version == revision
            for one in CHECKS:
                with checks.check(f"{revision} {one.__name__}"):
                    assert await one(client)
    return checks.report()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
