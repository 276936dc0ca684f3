"""`ControlGroup`: limits memory and processes of a whole command, where this user may make control groups.

Under cgroup v2 a new group lies beside the one of this process or below it, wherever the controllers are
delegated (systemd does so for user sessions); under v1 below it. Making and removing one takes a few file
operations.
"""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from agents.sandbox.policy import Limits

_NUMBERS = itertools.count()
_REMOVE_S = 2.0


class ControlGroup:
    """The folders of one group: one under v2, one for each controller under v1."""

    def __init__(self, folders: Sequence[Path], limits: Limits) -> None:
        """Make the folders and write the limits.

        Raises:
            OSError: this user may not.
        """
        self._folders: list[Path] = []
        try:
            for folder in folders:
                folder.mkdir()
                self._folders.append(folder)
            self._write("pids.max", limits.processes)
            memory = limits.memory_bytes
            if not self._write("memory.max", memory, required=False):
                self._write("memory.limit_in_bytes", memory)
            self._write("memory.swap.max", 0, required=False)
        except OSError:
            self.remove()
            raise

    def _write(self, name: str, value: int, *, required: bool = True) -> bool:
        """Write one limit into the folder that has it; whether there is one."""
        for folder in self._folders:
            if (folder / name).exists():
                (folder / name).write_text(str(value))
                return True
        if required:
            raise FileNotFoundError(2, "No such control", name)
        return False

    def add(self, pids: Sequence[int]) -> None:
        """Move processes into the group; what they start afterwards is in it, too.

        Raises:
            OSError: a process may not be moved.
        """
        for folder in self._folders:
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Kill what is left in the group and remove it."""
        until = time.monotonic() + _REMOVE_S
        for folder in self._folders:
            while time.monotonic() < until:
                with contextlib.suppress(OSError):
                    for pid in (folder / "cgroup.procs").read_text().split():
                        os.kill(int(pid), signal.SIGKILL)
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.002)  # a killed process has not been reaped yet


@contextmanager
def control_group(limits: Limits) -> Iterator[ControlGroup | None]:
    """A group for one command, or None where there can be none."""
    parents = parent_folders()
    if not parents:
        yield None
        return
    name = f"pravaha-{os.getpid()}-{next(_NUMBERS)}"
    group = ControlGroup([parent / name for parent in parents], limits)
    try:
        yield group
    finally:
        group.remove()


def _remove_abandoned(parent: Path) -> None:
    """Remove groups of processes that were killed before they could; those in use cannot be removed."""
    for folder in parent.glob("pravaha-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()


@cache
def parent_folders() -> tuple[Path, ...]:
    """Where groups can be made, as found by making one; empty if nowhere."""
    for parents in _candidates():
        folders = [parent / f"pravaha-{os.getpid()}-probe" for parent in parents]
        try:
            ControlGroup(folders, Limits()).remove()
        except OSError:
            continue
        for parent in parents:
            _remove_abandoned(parent)
        return tuple(parents)
    return ()


def _candidates() -> Iterator[list[Path]]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    paths = {line.split(":", 2)[1]: line.split(":", 2)[2].lstrip("/") for line in lines}
    if "" in paths:
        for mounted in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
            own = Path(mounted, paths[""])
            for parent in (own, own.parent):
                if parent.is_relative_to(mounted) and _delegated(parent):
                    yield [parent]
    first = [
        Path("/sys/fs/cgroup", controller, paths[controller])
        for controller in ("pids", "memory")
        if controller in paths
    ]
    if len(first) == 2:
        yield first


def _delegated(folder: Path) -> bool:
    """Whether groups below a folder of cgroup v2 have the controllers."""
    try:
        controllers = (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False
    return {"pids", "memory"} <= set(controllers) and os.access(folder, os.W_OK)
