"""Servers of `tests/fakes/mcp_server.py`, and whether their processes are gone."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.mcp.server import McpServer

SCRIPT = Path(__file__).parents[3] / "fakes" / "mcp_server.py"


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    """A file into which each server writes its process ids."""
    return tmp_path / "pids"


@pytest.fixture
def tools_file(tmp_path: Path) -> Path:
    """A file of definitions that replace or join those of the script."""
    return tmp_path / "tools.json"


@pytest.fixture
def make_server(pids: Path, tools_file: Path) -> Callable[..., McpServer]:
    """A server with some flags. Its times only end a hang, unless a test is about them."""

    def make(*flags: str, name: str = "fake", **more: object) -> McpServer:
        options = {"connect_s": 60.0, "call_s": 60.0, **more}
        return McpServer(
            name,
            sys.executable,
            ("-S", "-E", str(SCRIPT), *flags),
            env={"MCP_PID": str(pids), "MCP_TOOLS": str(tools_file)},
            **options,
        )

    return make


@pytest.fixture
def redefine(tools_file: Path) -> Callable[..., None]:
    """Change or add a tool of the script."""

    def write(*definitions: dict[str, object]) -> None:
        tools_file.write_text(json.dumps(definitions))

    return write


def running(pids: Path) -> list[int]:
    """Which of the processes in the file still run; on a slow machine none has begun before it is given up."""
    found = []
    for pid in map(int, pids.read_text().split() if pids.exists() else ()):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found
