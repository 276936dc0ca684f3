"""`edit`: replace a passage of a file that this run has read and that has not changed since."""

import asyncio
from typing import Any

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.text.unified_diff import make_diff
from agents.tools.arguments import Arguments, RelativePath
from agents.tools.bounded_text import bounded
from agents.tools.read import canonical, digest, read_digests, text_of
from agents.tools.sensitive import file_taint
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput


class EditArguments(Arguments):
    """A passage that occurs exactly once in the file, and its replacement."""

    path: RelativePath
    old: str = Field(min_length=1, max_length=100_000)
    new: str = Field(max_length=100_000)


def unchanged_since_read(context: ToolContext, path: str) -> bytes:
    """The file's bytes, if they are those that this run has read.

    Raises:
        InvalidTask: it was not read, or has changed since.
    """
    known = read_digests(context).get(path)
    if known is None:
        raise InvalidTask(f"Read {path} before changing it.")
    data = context.files.read(context.root, path)
    if digest(data) != known:
        raise InvalidTask(f"{path} has changed since it was read: read it again.")
    return data


def _edited(context: ToolContext, path: str, old: str, new: str) -> tuple[str, str]:
    """The file's text before and after the edit, which is not made.

    Raises:
        InvalidTask: it was not read, has changed since, or does not have the passage once.
    """
    data = unchanged_since_read(context, path)
    text_of(path, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:  # decoding with replacements would destroy the other bytes
        raise InvalidTask(f"{path} is not UTF-8 and cannot be edited.") from error
    count = text.count(old)
    if not count:
        raise InvalidTask(
            f"The passage is not in {path}: copy its lines exactly as they were read."
        )
    if count > 1:
        raise InvalidTask(f"The passage occurs {count} times in {path}: give more of its lines.")
    return text, text.replace(old, new)


def _replace(context: ToolContext, path: str, old: str, new: str) -> tuple[str, str]:
    text, changed = _edited(context, path, old, new)
    encoded = changed.encode("utf-8", "replace")
    context.files.write(context.root, path, encoded, replace=True)
    read_digests(context)[path] = digest(encoded)
    return text, changed


async def _preview(arguments: Any, context: ToolContext) -> str:
    path = canonical(arguments.path)
    edited = await asyncio.to_thread(_edited, context, path, arguments.old, arguments.new)
    return diff_of(path, *edited)


def diff_of(path: str, before: str | None, after: str) -> str:
    """The diff between two texts of a file, with LF only: for people and models; None stands for no file."""
    shown = "".join(one if one.isprintable() else "\ufffd" for one in path)  # it stays on its line
    return make_diff(shown, None if before is None else _with_lf(before), _with_lf(after))


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n")


async def _edit(arguments: Any, context: ToolContext) -> ToolOutput:
    path = canonical(arguments.path)
    before, after = await asyncio.to_thread(_replace, context, path, arguments.old, arguments.new)
    diff = diff_of(path, before, after)
    return ToolOutput(
        bounded(diff or "The text is unchanged."),
        data={"path": path, "diff": diff},
        taint=file_taint(diff, path),
    )


EDIT = Tool(
    name="edit",
    description="Replace a passage of a file that was read.",
    arguments=EditArguments,
    effects=frozenset({Effect.WRITE}),
    call=_edit,
    preview=_preview,
    idempotent=False,
    target=lambda arguments: arguments.path,
)
