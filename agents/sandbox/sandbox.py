"""`Sandbox`: runs commands under a policy. Implementations: bubblewrap, and Landlock with seccomp."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agents.api.errors import AgentError
from agents.sandbox.captured_output import CapturedOutput
from agents.sandbox.policy import SandboxPolicy
from agents.sandbox.visible_paths import links_to


class SandboxUnavailable(AgentError):
    """No sandbox with all required layers can be made on this machine."""


class SandboxFailed(AgentError):
    """The sandbox could not start a command that it should have started."""


class Layer(StrEnum):
    """One protection around a command."""

    ENVIRONMENT = "environment"
    """Only a few variables are passed on."""
    LIMITS = "limits"
    """Memory, processor time, processes, file size, descriptors."""
    PRIVILEGES = "privileges"
    """No capabilities, and no program gains privileges."""
    NAMESPACES = "namespaces"
    """Own processes, mounts, IPC, host name, and network unless all of it is permitted."""
    MOUNTS = "mounts"
    """Only the visible files are mounted."""
    LANDLOCK = "landlock"
    """The kernel checks each file access; from ABI 6 on signals, too."""
    SECCOMP = "seccomp"
    """System calls that programs do not need are refused."""
    CGROUP = "cgroup"
    """Memory and processes of the whole command are limited together."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has ended.

    Attributes:
        status: its exit status; negative for the signal that ended it; 127 if there is no such program.
        output: what it wrote to standard output and standard error, in order.
        seconds: wall time.
        ended_by: why the sandbox ended it, such as `the time limit`; empty if it ended by itself.
        absent: why there is no such program; empty if it was executed.
    """

    status: int
    output: CapturedOutput
    seconds: float
    ended_by: str = ""
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run.

    Attributes:
        words: the program and its arguments; no shell interprets them.
        folder: the working folder, visible by the policy.
        environment: variables beside those of every sandboxed command.
        artifact: file for the whole output if it is too long to be kept; None keeps head and tail only.
        progress: called with pieces of the output's beginning, from the event loop.
        programs: folders that are searched for programs before the others, such as that of an environment.
    """

    words: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    artifact: Path | None = None
    progress: Callable[[str], None] = lambda text: None
    programs: Sequence[Path] = ()

    def variables(self, base: Mapping[str, str]) -> dict[str, str]:
        """All variables of the command, from those of every sandboxed command; empty ones are left out."""
        found = {**base, **self.environment}
        found["PATH"] = os.pathsep.join([*map(str, self.programs), found.get("PATH", "")])
        return {name: value for name, value in found.items() if value}

    def links(self) -> list[Path]:
        """The symbolic links on the way to the program and to those folders."""
        names = [os.path.join(self.folder, self.words[0])] if "/" in self.words[0] else []
        return [link for name in (*names, *map(str, self.programs)) for link in links_to(name)]


class Sandbox(Protocol):
    """Runs commands. Use from one event loop."""

    @property
    def name(self) -> str:
        """Such as `bubblewrap`."""
        ...

    @property
    def active_layers(self) -> tuple[Layer, ...]:
        """The layers around every command, as found by running one."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What this sandbox does not do on this machine, one sentence each."""
        ...

    async def run(self, command: Command, policy: SandboxPolicy) -> CommandResult:
        """Run a command to its end. Cancelling kills it and everything that it started.

        Raises:
            InvalidTask: a folder of the policy does not exist or would open the home folder.
            SandboxUnavailable: this sandbox cannot provide the policy's network.
            SandboxFailed: a layer could not be applied; the command was not run.
        """
        ...
