"""`order_of`: what the launcher is told to do, as JSON values (`agents.sandbox.launcher`)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.sandbox.policy import SandboxPolicy
from agents.sandbox.sandbox import Command
from agents.sandbox.visible_paths import DEVICES

_LOCKED_BYTES = 64 << 10
_ADDRESS_SPACE_PER_MEMORY = 4
"""Programs reserve address space that they never use; this is what `restricted` lets them reserve."""


@dataclass(frozen=True, slots=True)
class Means:
    """What an implementation has around the command.

    Attributes:
        namespaces: whether the command is in process, mount and IPC namespaces of its own.
        hides_sockets: whether sockets of other programs are not mounted.
        landlock: whether Landlock is applied.
        seccomp: whether the filter is applied.
        counts_processes: whether a cgroup limits processes.
    """

    namespaces: bool
    hides_sockets: bool
    landlock: bool
    seccomp: bool
    counts_processes: bool


def order_of(
    command: Command,
    policy: SandboxPolicy,
    environment: dict[str, str],
    means: Means,
    *,
    readable: Sequence[Path],
    writable: Sequence[Path],
    enter: dict[str, Any] | None,
) -> dict[str, Any]:
    """The order for one command.

    Args:
        command: what to run.
        policy: checked.
        environment: all of the command's variables.
        means: what is around it.
        readable: everything that Landlock lets it read and execute.
        writable: everything that Landlock lets it change.
        enter: the namespaces that the launcher enters itself, or None.
    """
    return {
        "command": list(command.words),
        "folder": os.path.realpath(command.folder),
        "environment": environment,
        "limits": _limits(policy, means),
        "namespaces": enter,
        "landlock": {
            "readable": [str(path) for path in (*readable, Path("/proc"))],
            "writable": [*(str(path) for path in writable), *DEVICES],
            "tcp": policy.network != "none",
        }
        if means.landlock
        else None,
        "system_calls": {
            "internet": policy.network != "none",
            "unix_sockets": means.hides_sockets,
            "tracing": policy.profile == "developer",
            "own_namespaces": means.namespaces,
        }
        if means.seccomp
        else None,
    }


def _limits(policy: SandboxPolicy, means: Means) -> dict[str, Any]:
    limits = policy.limits
    kernel = {
        "DATA": limits.memory_bytes,
        "CPU": limits.cpu_s,
        "FSIZE": limits.file_bytes,
        "NOFILE": limits.open_files,
        "MEMLOCK": _LOCKED_BYTES,
        "CORE": 0,
    }
    if policy.profile == "restricted":
        kernel["AS"] = _ADDRESS_SPACE_PER_MEMORY * limits.memory_bytes
    exempt = os.geteuid() == 0  # the kernel does not limit the superuser's processes
    return {
        "kernel": kernel,
        "processes": 0 if exempt else limits.processes,
        "own_count": means.namespaces,
        "polled_processes": limits.processes if exempt and not means.counts_processes else 0,
    }
