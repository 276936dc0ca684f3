"""`write`: create a file, or replace one that this run has read and that has not changed since."""

import asyncio
from typing import Any

from pydantic import Field

from agents.tools.arguments import Arguments, RelativePath
from agents.tools.edit import unchanged_since_read
from agents.tools.read import canonical, digest, read_digests
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput


class WriteArguments(Arguments):
    """A file and its whole contents."""

    path: RelativePath
    content: str = Field(max_length=500_000)


async def _write(arguments: Any, context: ToolContext) -> ToolOutput:
    path = canonical(arguments.path)
    replace = path in read_digests(context)
    if replace:
        await asyncio.to_thread(unchanged_since_read, context, path)
    data = arguments.content.encode("utf-8", "replace")
    await asyncio.to_thread(context.files.write, context.root, path, data, replace=replace)
    read_digests(context)[path] = digest(data)
    lines = len(arguments.content.splitlines())
    return ToolOutput(
        f"Wrote {lines} lines to {path}.",
        data={"path": path, "created": not replace, "lines": lines},
        choices={"path": (path,)},
    )


WRITE = Tool(
    name="write",
    description="Create a file, or replace one that was read.",
    arguments=WriteArguments,
    effects=frozenset({Effect.WRITE}),
    call=_write,
    idempotent=False,
    target=lambda arguments: arguments.path,
)
