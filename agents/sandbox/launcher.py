"""The first program of every sandboxed command: restricts itself, then executes the command.

Run as `python -I -S launcher.py EXTENSION STATUS_FD`, in a fresh single-threaded interpreter, because most
restrictions cannot be applied safely between fork and exec of a threaded process. It imports nothing of
Pravāha but the extension module, by its path. The order is read from standard input as JSON
(`agents.sandbox.order`).

    launcher ── namespaces, if the order says so ──► supervisor ──► command
                                                     │              Landlock, seccomp, limits
                                                     └ no privileges, ends everything that is left

Lines on the status descriptor: `waiting` before the order is read; `failed REASON` if a restriction could not
be applied; `ready` when the command is about to be executed; `absent REASON` if there is no such program;
`crowded` if it was killed for its number of processes; `exit STATUS` (negative for a signal) at its end.
"""

import contextlib
import fcntl
import json
import os
import resource
import signal
import sys
import time
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import FrameType, ModuleType
from typing import Any

POLL_S = 0.02
STOP_S = 5.0
"""Seconds after which a supervisor gives up killing processes that keep appearing."""
_LOOPBACK_UP = (
    b"lo".ljust(16, b"\0") + b"\x49\0" + b"\0" * 22
)  # struct ifreq: UP | LOOPBACK | RUNNING
_SET_INTERFACE_FLAGS = 0x8914


def load_extension(path: str) -> ModuleType:
    """The extension module `_core` from its file, without the package around it."""
    loader = ExtensionFileLoader("_core", path)
    spec = spec_from_loader("_core", loader)
    if spec is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


class Status:
    """The descriptor on which the launcher reports."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_inheritable(descriptor, False)  # the command does not get it

    def say(self, text: str) -> None:
        """Write one line; nobody may be listening any more."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, text.replace("\n", " ").encode() + b"\n")


def main(extension: str, descriptor: int) -> int:
    """Carry out the order on standard input; the exit status of this process."""
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    status = Status(descriptor)
    try:
        core = load_extension(extension)
        status.say("waiting")
        order = json.loads(sys.stdin.buffer.read())
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.close(null)
        if order["namespaces"] is not None:
            return _in_namespaces(core, order, status)
        core.signal_when_parent_ends(signal.SIGTERM)
        return _supervise(core, order, status)
    except BaseException as error:
        status.say(f"failed {type(error).__name__}: {error}")
        return 125


def _in_namespaces(core: ModuleType, order: dict[str, Any], status: Status) -> int:
    """Supervise in new namespaces: the supervisor is the init, with which every process in them ends."""
    core.signal_when_parent_ends(signal.SIGKILL)
    wanted = order["namespaces"]
    core.enter_namespaces(own_network=wanted["own_network"])
    init = os.fork()
    if init:
        _, waited = os.waitpid(init, 0)
        return os.waitstatus_to_exitcode(waited) & 0xFF
    try:
        core.signal_when_parent_ends(signal.SIGKILL)
        core.mount_proc()
        if wanted["shared_memory"]:
            core.bind_mount(wanted["shared_memory"], "/dev/shm", read_only=False)  # noqa: S108
        for path in wanted["read_only"]:
            core.bind_mount(path, path, read_only=True)
        if wanted["loopback"]:
            _raise_loopback()
        os._exit(_supervise(core, order, status))
    except BaseException as error:
        status.say(f"failed {type(error).__name__}: {error}")
        os._exit(125)


def _raise_loopback() -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SET_INTERFACE_FLAGS, _LOOPBACK_UP)


def _supervise(core: ModuleType, order: dict[str, Any], status: Status) -> int:
    """Start the command, wait for it, and end every descendant that is left."""
    core.become_subreaper()
    core.drop_privileges()
    command = os.fork()
    if command == 0:
        try:
            _confine(core, order)
            os.chdir(order["folder"])
        except BaseException as error:
            status.say(f"failed {type(error).__name__}: {error}")
            os._exit(125)
        status.say("ready")
        try:
            words = order["command"]
            os.execvpe(words[0], words, order["environment"])  # noqa: S606 - the sandbox's purpose
        except (OSError, ValueError) as error:
            status.say(f"absent {getattr(error, 'strerror', None) or error}")
        os._exit(127)
    signal.signal(signal.SIGTERM, _stop)
    core.hide_memory()
    try:
        waited = _wait(command, order["limits"]["polled_processes"], status)
    except _Stopped:
        waited = signal.SIGTERM
    _end_descendants()
    code = os.waitstatus_to_exitcode(waited)
    status.say(f"exit {code}")
    return code if code >= 0 else 128 - code


class _Stopped(BaseException):
    """The supervisor was told to end the command."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


def _wait(command: int, most_processes: int, status: Status) -> int:
    """The wait status of the command; orphans are reaped meanwhile.

    With `most_processes`, descendants are counted repeatedly and all are killed when there are more: for the
    superuser, whom the kernel exempts from the limit of processes.
    """
    while True:
        pid, waited = os.waitpid(-1, os.WNOHANG if most_processes else 0)
        if pid == command:
            return waited
        if pid == 0:
            if len(_descendants()) > most_processes:
                status.say("crowded")
                return signal.SIGKILL
            time.sleep(POLL_S)


def _descendants() -> list[int]:
    """Process ids of all descendants, from the parents that `/proc` names."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it has ended
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    parents = [os.getpid()]
    while parents:
        below = children.get(parents.pop(), [])
        found += below
        parents += below
    return found


def _end_descendants() -> None:
    """Kill all descendants, and those that they start meanwhile, and reap them."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _confine(core: ModuleType, order: dict[str, Any]) -> None:
    """Restrict this process; nothing here can be undone."""
    core.signal_when_parent_ends(signal.SIGKILL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for name, value in order["limits"]["kernel"].items():
        _limit(getattr(resource, f"RLIMIT_{name}"), value)
    if order["limits"]["processes"]:
        own = 0 if order["limits"]["own_count"] else _tasks_of(os.getuid())
        _limit(resource.RLIMIT_NPROC, own + order["limits"]["processes"])
    if order["landlock"] is not None:
        core.restrict_files(**order["landlock"])
    if order["system_calls"] is not None:
        core.filter_system_calls(**order["system_calls"])


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _tasks_of(user: int) -> int:
    """Threads of a user outside of the sandbox, which the kernel counts with those inside."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it has ended
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
