"""`write`: create a file, or replace one that this run has read and that has not changed since."""

import asyncio
import os
from typing import Any

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.tools.arguments import Arguments, RelativePath
from agents.tools.edit import diff_of, unchanged_since_read
from agents.tools.read import canonical, digest, read_digests
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput


class WriteArguments(Arguments):
    """A file and its whole contents."""

    path: RelativePath
    content: str = Field(max_length=500_000)


def _before(context: ToolContext, path: str) -> str | None:
    """The text that is replaced; None for a new file.

    Raises:
        InvalidTask: there is a file that was not read, or it has changed since.
    """
    if path in read_digests(context):
        return unchanged_since_read(context, path).decode("utf-8", "replace")
    if os.path.lexists(context.root / path):
        raise InvalidTask(f"{path} exists already: read it before replacing it.")
    return None


async def _preview(arguments: Any, context: ToolContext) -> str:
    path = canonical(arguments.path)
    before = await asyncio.to_thread(_before, context, path)
    return diff_of(path, before, arguments.content)


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
    preview=_preview,
    idempotent=False,
    target=lambda arguments: arguments.path,
)
