"""`shell`: runs a command in the project's folder, in the sandbox.

The command may change the folder, except `.git` and `.pravaha`, and a temporary folder of its own; it sees
system folders and toolchains, has no network, and ends with everything it started (`agents.sandbox`).
"""

import asyncio
import shlex
import uuid
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

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


class ShellArguments(Arguments):
    """The command line, its network (`loopback` is the sandbox's own) and its time limit."""

    command: str = Field(min_length=1, max_length=4_000)
    network: Literal["none", "loopback"] = "none"
    seconds: int = Field(default=60, ge=1, le=MAX_SECONDS)


def policy_of(arguments: ShellArguments, root: Path) -> SandboxPolicy:
    """What the command may do."""
    limits = Limits(
        memory_bytes=_MEMORY_BYTES, cpu_s=2 * arguments.seconds, wall_s=float(arguments.seconds)
    )
    return SandboxPolicy("developer", arguments.network, writable=(root,), limits=limits)


async def _shell(arguments: Any, context: ToolContext) -> ToolOutput:
    words = shell_words(arguments.command)
    command = Command(
        words, context.root, artifact=_artifact(context.artifacts), progress=context.progress
    )
    try:
        sandbox = await open_sandbox(context.sandbox)
        done = await sandbox.run(command, policy_of(arguments, context.root))
    except (SandboxUnavailable, SandboxFailed) as error:
        return ToolOutput(str(error), failed=True)
    return await asyncio.to_thread(_output, done)


def _artifact(folder: Path | None) -> Path | None:
    """The file for an output that is too long to be kept."""
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"shell-{uuid.uuid4().hex[:12]}.log"


def _output(done: CommandResult) -> ToolOutput:
    text = done.output.text
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
            "artifact": None if done.output.artifact is None else str(done.output.artifact),
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
