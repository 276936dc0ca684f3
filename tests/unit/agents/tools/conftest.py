"""A small project and a way to call a tool as the executor does."""

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agents.tools.tool import Tool, ToolContext, ToolOutput

Call = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of a few files that is no repository."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("import os\n\n\ndef answer():\n    return 42\n")
    (root / "src" / "b.py").write_text("print('hello')\n")
    (root / "README.md").write_text("# Project\n")
    (tmp_path / "outside.txt").write_text("outside the root\n")
    return root


@pytest.fixture
def repository(project: Path) -> Path:
    """The same with one commit."""
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "First"],
    ):
        subprocess.run(["git", "-C", str(project), *command], check=True)
    return project


@pytest.fixture
def context(project: Path) -> ToolContext:
    """Where tools act."""
    return ToolContext(root=project, run="run-1", agent="coder")


@pytest.fixture
def call(context: ToolContext) -> Call:
    """Call a tool with its arguments checked."""

    async def run(tool: Tool, **arguments: Any) -> ToolOutput:
        return await tool.call(tool.arguments.model_validate(arguments), context)

    return run
