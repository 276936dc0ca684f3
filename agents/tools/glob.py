"""`glob`: names of files by pattern, as `.gitignore` leaves them."""

import asyncio
from typing import Any

from pydantic import Field

from agents.tools.arguments import Arguments
from agents.tools.bounded_text import bounded
from agents.tools.sensitive import FILE_TAINT
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import list_files

MAX_NAMES = 500


class GlobArguments(Arguments):
    """A pattern: `*` within a name, `**` over folders, `?` for one character."""

    pattern: str = Field(default="**", min_length=1, max_length=200)


def matches(pattern: str, path: str) -> bool:
    """Whether a path matches. A pattern without `/` matches the name in any folder."""
    pattern = pattern.removeprefix("./")
    if "/" not in pattern and pattern != "**":
        pattern = f"**/{pattern}"
    return _matches(tuple(pattern.split("/")), tuple(path.split("/")))


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Component by component, in O(components of pattern × of path)."""
    reachable = {0}
    for part in pattern:
        if part == "**":
            reachable = set(range(min(reachable, default=len(path) + 1), len(path) + 1))
            continue
        reachable = {at + 1 for at in reachable if at < len(path) and _name_matches(part, path[at])}
    return len(path) in reachable


def _name_matches(pattern: str, name: str) -> bool:
    """`*` and `?` in one component, in O(length of pattern × of name): no regular expression."""
    reachable = {0}
    for letter in pattern:
        if letter == "*":
            reachable = set(range(min(reachable, default=len(name) + 1), len(name) + 1))
        else:
            reachable = {at + 1 for at in reachable if at < len(name) and letter in ("?", name[at])}
    return len(name) in reachable


async def _glob(arguments: Any, context: ToolContext) -> ToolOutput:
    names = await asyncio.to_thread(list_files, context.root)
    found = [name for name in names if matches(arguments.pattern, name)]
    shown = found[:MAX_NAMES]
    rest = f"\n[{len(found) - len(shown)} more files]" if len(found) > len(shown) else ""
    return ToolOutput(
        bounded("\n".join(shown) + rest) if found else "No file matches.",
        data={"paths": shown, "count": len(found)},
        taint=FILE_TAINT,
        choices={"path": tuple(shown)},
    )


GLOB = Tool(
    name="glob",
    description="List files whose path matches a pattern.",
    arguments=GlobArguments,
    effects=frozenset({Effect.READ}),
    call=_glob,
    target=lambda arguments: arguments.pattern,
)
