"""`git`: the history of the folder, read-only.

The subcommand and its options are fixed here; a caller chooses a revision, a path and a count. Configuration
of the repository that could run programs (pagers, external diffs, text conversion, hooks, monitors) is off.
"""

import os
from typing import Any, Literal

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.tools.arguments import Arguments, RelativePath
from agents.tools.beneath import parts_of
from agents.tools.bounded_text import bounded
from agents.tools.process import run_process
from agents.tools.sensitive import taint_of
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput

GIT_S = 20.0
_OPTIONS = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "diff.external=",
    "-c", "core.pager=cat",
    "-c", "protocol.allow=never",
)  # fmt: skip
_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")


class GitArguments(Arguments):
    """What to show. `revision` is a commit, branch or tag; `path` a file or folder."""

    action: Literal["log", "show", "diff", "blame", "status"]
    revision: str = Field(
        default="", max_length=200, pattern=r"^([A-Za-z0-9_][A-Za-z0-9_./~^@{}-]*)?$"
    )
    path: RelativePath | None = None
    count: int = Field(default=20, ge=1, le=200)


def command_of(arguments: GitArguments) -> list[str]:
    """The words after `git`.

    Raises:
        InvalidTask: the path leaves the folder, or `blame` has none.
    """
    path = [] if arguments.path is None else ["--", "/".join(parts_of(arguments.path))]
    revision = [arguments.revision] if arguments.revision else []
    match arguments.action:
        case "log":
            words = ["log", f"--max-count={arguments.count}", "--date=iso", "--stat", *_PLAIN_DIFF]
        case "show":
            words = ["show", *_PLAIN_DIFF]
        case "diff":
            words = ["diff", *_PLAIN_DIFF]
        case "blame":
            if not path:
                raise InvalidTask("git blame needs a path.")
            words = ["blame", "--date=short"]
        case "status":
            return ["status", "--short", "--branch", *path]
    return [*words, *revision, *path]


async def _git(arguments: Any, context: ToolContext) -> ToolOutput:
    command = ["git", *_OPTIONS, "-C", str(context.root), *command_of(arguments)]
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }
    try:
        done = await run_process(command, environment=environment, timeout_s=GIT_S)
    except OSError as error:
        raise InvalidTask("git is not installed.") from error
    if done.timed_out:
        raise InvalidTask(f"git took more than {GIT_S:g} s.")
    text = done.output.decode("utf-8", "replace")
    if done.status != 0:
        reason = done.errors.decode("utf-8", "replace").strip().splitlines() or ["it failed"]
        return ToolOutput(f"git: {reason[-1][:300]}", data={"status": done.status}, failed=True)
    return ToolOutput(bounded(text) or "Nothing.", data={"output": text}, taint=taint_of(text))


GIT = Tool(
    name="git",
    description="Show the history: log, show, diff, blame or status.",
    arguments=GitArguments,
    effects=frozenset({Effect.READ}),
    call=_git,
    target=lambda arguments: arguments.action,
)
