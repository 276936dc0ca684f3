"""`read`: lines of one file. The hash of what was read permits a later edit."""

import asyncio
import hashlib
from typing import Any

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.tools.arguments import Arguments, RelativePath
from agents.tools.beneath import parts_of
from agents.tools.bounded_text import bounded
from agents.tools.sensitive import file_taint
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput

MAX_LINES = 400
"""Lines returned by one call."""


class ReadArguments(Arguments):
    """A file and a range of its lines."""

    path: RelativePath
    start_line: int = Field(default=1, ge=1, le=10_000_000)
    end_line: int | None = Field(default=None, ge=1, le=10_000_000)


def digest(data: bytes) -> str:
    """The hash by which a changed file is noticed."""
    return hashlib.sha256(data).hexdigest()


def read_digests(context: ToolContext) -> dict[str, str]:
    """Digests of the files that this run has read or written, by path."""
    state: dict[str, str] = context.state.setdefault("read", {})
    return state


def canonical(path: str) -> str:
    """One spelling of a relative path.

    Raises:
        InvalidTask: the path leaves the root.
    """
    return "/".join(parts_of(path))


def text_of(path: str, data: bytes) -> str:
    """The file's text.

    Raises:
        InvalidTask: the file is binary.
    """
    if b"\0" in data[:8192]:
        raise InvalidTask(f"{path} is a binary file.")
    return data.decode("utf-8", "replace")


async def _read(arguments: Any, context: ToolContext) -> ToolOutput:
    path = canonical(arguments.path)
    data = await asyncio.to_thread(context.files.read, context.root, path)
    text = text_of(path, data)
    read_digests(context)[path] = digest(data)
    lines = text.splitlines()
    first = arguments.start_line
    last = min(arguments.end_line or len(lines), first + MAX_LINES - 1, len(lines))
    if lines and not first <= last:
        raise InvalidTask(f"{path} has {len(lines)} lines; {first} to {last} is no range of them.")
    shown = lines[first - 1 : last]
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, first))
    rest = f"\n[{len(lines) - last} more lines]" if last < len(lines) else ""
    return ToolOutput(
        bounded(numbered + rest),
        data={
            "path": path,
            "content": "\n".join(shown),
            "start_line": first,
            "end_line": last,
            "lines": len(lines),
            "sha256": digest(data),
        },
        taint=file_taint(numbered, path),
    )


READ = Tool(
    name="read",
    description="Read lines of a file.",
    arguments=ReadArguments,
    effects=frozenset({Effect.READ}),
    call=_read,
    target=lambda arguments: arguments.path,
)
