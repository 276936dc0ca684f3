"""`git`: the history of the folder, read-only.

The subcommand and its options are fixed here; a caller chooses a revision, a path and a count. Configuration
of the repository that could run programs is off: pagers, external diffs, text conversion, hooks, file
monitors, signature programs, submodules, fetching of missing objects, and content filters, which are named
by the repository and therefore listed first. Only what lies beneath the folder is shown.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.tools.arguments import Arguments, RelativePath
from agents.tools.beneath import parts_of
from agents.tools.bounded_text import bounded
from agents.tools.process import Finished, run_process
from agents.tools.sensitive import file_taint
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
    "-c", "core.sshCommand=false",
    "-c", "log.showSignature=false",
    "-c", "diff.ignoreSubmodules=all",
    "-c", "diff.submodule=short",
    "-c", "status.submoduleSummary=false",
    "-c", "protocol.allow=never",
)  # fmt: skip
_FILTER = re.compile(r"filter\..*\.(clean|smudge|process|required)", re.DOTALL | re.IGNORECASE)
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
    below = "." if arguments.path is None else "/".join(parts_of(arguments.path))
    path = ["--", below]
    revision = [arguments.revision] if arguments.revision else []
    match arguments.action:
        case "log":
            words = ["log", f"--max-count={arguments.count}", "--date=iso", "--stat", *_PLAIN_DIFF]
        case "show":
            words = ["show", *_PLAIN_DIFF]
        case "diff":
            words = ["diff", *_PLAIN_DIFF]
        case "blame":
            if arguments.path is None:
                raise InvalidTask("git blame needs a path.")
            words = ["blame", "--no-textconv", "--date=short"]
        case "status":
            return ["status", "--short", "--branch", "--ignore-submodules=all", *path]
    return [*words, *revision, *path]


async def _run(root: Path, words: Sequence[str]) -> Finished:
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C.UTF-8",
    }
    command = ["git", *_OPTIONS, "-C", str(root), *words]
    try:
        done = await run_process(command, environment=environment, timeout_s=GIT_S)
    except OSError as error:
        raise InvalidTask("git is not installed.") from error
    if done.timed_out:
        raise InvalidTask(f"git took more than {GIT_S:g} s.")
    return done


async def _without_filters(root: Path) -> list[str]:
    """Options that empty the content filters of the repository's configuration.

    `status` and `diff` would run them on changed files. Listing the configuration runs nothing.
    """
    listed = await _run(root, ["config", "--list", "--name-only", "-z"])
    names = set(listed.output.decode("utf-8", "replace").split("\0"))
    filters = sorted(name for name in names if _FILTER.fullmatch(name))
    return [word for name in filters for word in ("-c", f"{name}=")]


async def _git(arguments: Any, context: ToolContext) -> ToolOutput:
    words = command_of(arguments)
    done = await _run(context.root, [*await _without_filters(context.root), *words])
    text = done.output.decode("utf-8", "replace")
    if done.status != 0:
        reason = done.errors.decode("utf-8", "replace").strip().splitlines() or ["it failed"]
        return ToolOutput(f"git: {reason[-1][:300]}", data={"status": done.status}, failed=True)
    return ToolOutput(bounded(text) or "Nothing.", data={"output": text}, taint=file_taint(text))


GIT = Tool(
    name="git",
    description="Show the history: log, show, diff, blame or status.",
    arguments=GitArguments,
    effects=frozenset({Effect.READ}),
    call=_git,
    target=lambda arguments: arguments.action,
)
