"""The sandboxes that this machine has, and a place with a secret outside of them."""

import asyncio
import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents.api.errors import AgentError
from agents.sandbox.choice import bubblewrap_here, landlock_here
from agents.sandbox.sandbox import Sandbox

LIBC = ctypes.CDLL(None)
MAKERS = {
    "bubblewrap": bubblewrap_here,
    "landlock-namespaces": lambda: landlock_here(namespaces=True),
    "landlock": lambda: landlock_here(namespaces=False),
}


@cache
def sandbox_here(name: str) -> Sandbox | str:
    """The sandbox, or why this machine has none."""
    try:
        return asyncio.run(MAKERS[name]())
    except AgentError as error:
        return str(error)


@pytest.fixture(scope="module", params=list(MAKERS))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each sandbox that works here."""
    found = sandbox_here(request.param)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A project, a secret outside of it, and a process and sockets that a command should not reach."""
    top = tmp_path_factory.mktemp("place")
    root, outside = top / "project", top / "outside"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    outside.mkdir()
    secret = outside / "secret.txt"
    secret.write_text("the secret")
    environment = {"PATH": os.environ["PATH"], "SECRET": "the-secret-word"}
    foreign = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, env=environment
    )
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        unix.bind(str(outside / "s"))
        unix.listen()
        datagram.bind(str(outside / "d"))
        name = f"pravaha-test-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        key = 0x70720000 + os.getpid() % 0xFFFF
        segment = LIBC.shmget(key, 4096, 0o1600)  # IPC_CREAT
        assert segment >= 0
        try:
            yield SimpleNamespace(
                root=root,
                outside=outside,
                secret=secret,
                foreign=foreign,
                given={
                    "root": str(root),
                    "outside": str(outside),
                    "secret": str(secret),
                    "home": str(Path.home()),
                    "foreign_pid": foreign.pid,
                    "word": environment["SECRET"],
                    "port": server.getsockname()[1],
                    "unix": str(outside / "s"),
                    "unix_datagram": str(outside / "d"),
                    "abstract": name,
                    "shm_key": key,
                    "attempts": [],
                },
            )
        finally:
            LIBC.shmctl(segment, 0, None)  # IPC_RMID
            foreign.kill()
            foreign.communicate()
