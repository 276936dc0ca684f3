"""`shell`: runs a command in the project's folder, in the sandbox.

The command may change the folder, except `.git` and `.pravaha`, and a temporary folder of its own; it sees
system folders and toolchains, has no network, and ends with everything it started (`agents.sandbox`).
Programs that run the project's code, such as python, pytest and make, run in the project's environment.
"""

import asyncio
import shlex
import uuid
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from agents.project_tests.commands import program_on_path, read_by
from agents.project_tests.plan import RUNNER, environments_for
from agents.project_tests.python_search import Surroundings
from agents.project_tests.run import keep_output, outside_of
from agents.sandbox.choice import open_sandbox
from agents.sandbox.policy import Limits, SandboxPolicy
from agents.sandbox.sandbox import Command, CommandResult, SandboxFailed, SandboxUnavailable
from agents.tools.arguments import Arguments
from agents.tools.bounded_text import bounded
from agents.tools.sensitive import file_taint
from agents.tools.shell_words import shell_words
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput

MAX_SECONDS = 600
_START_AND_STOP_S = 40.0
_MEMORY_BYTES = 4 << 30
_TOOLS = frozenset(["make", "just", "tox", "nox", "cargo", "go", "npm", "pnpm", "yarn", "bun"])
"""Programs that run a project's tests; they are found on the user's PATH, wherever it points to."""
_RUN_PROJECTS_CODE = _TOOLS | {"python", "python3", "pytest", "py.test", "coverage", "sh"}
"""Programs that are searched for in the project's environment first, and search there themselves.

Not all: a project could bring its own `ls`, which a rule that permits `ls` would run.
"""


class ShellArguments(Arguments):
    """The command line, its network (`loopback` is the sandbox's own) and its time limit."""

    command: str = Field(min_length=1, max_length=4_000)
    network: Literal["none", "loopback"] = "none"
    seconds: int = Field(default=60, ge=1, le=MAX_SECONDS)
    keep: SkipJsonSchema[bool] = False
    """Keep a short output in a file, too. For procedures: models are not offered it."""


def policy_of(
    arguments: ShellArguments, root: Path, readable: tuple[Path, ...] = ()
) -> SandboxPolicy:
    """What the command may do."""
    limits = Limits(
        memory_bytes=_MEMORY_BYTES, cpu_s=2 * arguments.seconds, wall_s=float(arguments.seconds)
    )
    return SandboxPolicy(
        "developer", arguments.network, readable=readable, writable=(root,), limits=limits
    )


async def _shell(arguments: Any, context: ToolContext) -> ToolOutput:
    words = shell_words(arguments.command)
    command, readable = await asyncio.to_thread(_in_environment, words, context)
    try:
        sandbox = await open_sandbox(context.sandbox)
        done = await sandbox.run(command, policy_of(arguments, context.root, readable))
    except (SandboxUnavailable, SandboxFailed) as error:
        return ToolOutput(str(error), failed=True)
    kept = None
    if arguments.keep:
        kept = await asyncio.to_thread(keep_output, done, command.artifact)
    return await asyncio.to_thread(_output, done, kept)


def _in_environment(
    words: tuple[str, ...], context: ToolContext
) -> tuple[Command, tuple[Path, ...]]:
    """The command in the project's environment, and what it reads outside of the project."""
    root, program = context.root, words[0]
    found = environments_for(root, program)
    readable = [path for one in found for path in one.readable]
    programs: list[Path] = []
    variables: dict[str, str] = {}
    if found and (program in _RUN_PROJECTS_CODE or str(found[0].python).endswith(program[1:])):
        programs.append(found[0].programs)
        variables = found[0].variables
    installed = program_on_path(program, Surroundings.here()) if program in _TOOLS else None
    if installed is not None:
        readable += read_by(installed)
        programs.append(installed.parent)
    if str(RUNNER) in words:
        readable.append(RUNNER)
    artifact = _artifact(context.artifacts)
    command = Command(words, root, variables, artifact, context.progress, tuple(programs))
    return command, outside_of(root, readable)


def _artifact(folder: Path | None) -> Path | None:
    """The file for an output that is too long to be kept."""
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"shell-{uuid.uuid4().hex[:12]}.log"


def _output(done: CommandResult, kept: Path | None) -> ToolOutput:
    text = done.output.text
    artifact = kept or done.output.artifact
    lines = [bounded(text.rstrip("\n"))] if text.strip() else []
    if done.output.artifact is not None:
        lines.append(f"[{done.output.size:,} bytes of output are in {done.output.artifact}]")
    lines.append(f"[{_ending(done)} after {done.seconds:.1f} s]")
    return ToolOutput(
        bounded("\n".join(lines)),
        data={
            "status": done.status,
            "output": text,
            "output_bytes": done.output.size,
            "artifact": None if artifact is None else str(artifact),
            "ended_by": done.ended_by,
            "seconds": round(done.seconds, 3),
        },
        failed=done.status != 0,
        taint=file_taint(text),
    )


def _ending(done: CommandResult) -> str:
    if done.absent:
        return f"not run: {done.absent},"
    if done.ended_by:
        return f"killed by {done.ended_by}"
    if done.status < 0:
        return f"killed by signal {-done.status}"
    return f"exit status {done.status}"


SHELL = Tool(
    name="shell",
    description="Run a command in the project's folder, in a sandbox without network.",
    arguments=ShellArguments,
    effects=frozenset({Effect.EXECUTE}),
    call=_shell,
    timeout_s=MAX_SECONDS + _START_AND_STOP_S,
    idempotent=False,
    target=lambda arguments: shlex.join(shell_words(arguments.command)),
    words=lambda arguments: shell_words(arguments.command),
)
