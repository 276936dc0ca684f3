"""The procedure of `tool`: requests in words, argument schemas, permissions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from agents.api.agent_spec import AgentSpec
from agents.api.events import RunState
from agents.cluster import Cluster
from agents.plugins.registry import load_registry
from agents.procedures.execution.tool import parse_request
from agents.procedures.procedure import AgentTask
from agents.roster.roster import Roster
from agents.tools.tool import Effect, Tool, ToolOutput


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Read(Strict):
    path: str
    start: int = Field(default=1, ge=1)
    end: int | None = None


class Grep(Strict):
    pattern: str
    path: str = "."


class Edit(Strict):
    path: str
    old: str
    new: str


class Shell(Strict):
    command: str


async def read(arguments: Read, context) -> ToolOutput:
    lines = (Path(context.root) / arguments.path).read_text().splitlines()
    return ToolOutput("\n".join(lines[arguments.start - 1 : arguments.end]))


async def never(arguments, context) -> ToolOutput:
    raise AssertionError("an unapproved call")


def tool(name: str, arguments: type[BaseModel], call=never, effect=Effect.READ) -> Tool:
    return Tool(name, f"Does {name}.", arguments, frozenset([effect]), call)


TOOLS = {
    "read": tool("read", Read, read),
    "grep": tool("grep", Grep),
    "edit": tool("edit", Edit, effect=Effect.WRITE),
    "shell": tool("shell", Shell, effect=Effect.EXECUTE),
}


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("read src/x.py lines 1-20", "read", {"path": "src/x.py", "start": 1, "end": 20}),
        ("Please show the file README.md", "read", {"path": "README.md"}),
        ('grep "def main" in src', "grep", {"pattern": "def main", "path": "src"}),
        ("search for TODO in app/cli.py", "grep", {"pattern": "TODO", "path": "app/cli.py"}),
        ("run pytest -q tests/unit", "shell", {"command": "pytest -q tests/unit"}),
        ("shell: ls -la", "shell", {"command": "ls -la"}),
        ('replace "a b" by "c" in x.py', "edit", {"old": "a b", "new": "c", "path": "x.py"}),
        ('read {"path": "a.md", "start": 3}', "read", {"path": "a.md", "start": 3}),
    ],
)
def test_a_request_becomes_a_call(text, name, arguments):
    assert parse_request(AgentTask(text), TOOLS) == (name, arguments, "")


@pytest.mark.parametrize(
    ("text", "inputs", "reason"),
    [
        ("reed x.py", {"tool": "reed"}, "Did you mean read"),
        ("read", {}, "read needs other arguments: path"),
        ("read", {"tool": "read", "arguments": {"path": "a", "start": 0}}, "start"),
        ("python 1+1", {}, "may not call"),
        ("dance", {}, "names no tool"),
    ],
)
def test_a_wrong_request_is_refused_before_the_call(text, inputs, reason):
    assert reason in parse_request(AgentTask(text, inputs=inputs), TOOLS)[2]


@given(st.text(max_size=80))
def test_any_text_is_a_call_or_refused(text):
    name, _, reason = parse_request(AgentTask(text), TOOLS)
    assert reason or name in TOOLS


def cluster() -> Cluster:
    registry = load_registry(enabled=())
    registry.tools = dict(TOOLS)
    spec = AgentSpec("tool", "execution", "d", "c", tuple(TOOLS), (), "ToolResult")
    return Cluster(registry=registry, roster=Roster({"tool": spec}))


async def test_the_tool_is_called(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    result = await cluster().run("tool", [tmp_path], task="read a.txt lines 2-3")
    assert result.output.text == "two\nthree"
    assert result.output.arguments == {"path": "a.txt", "start": 2, "end": 3}
    assert result.usage.tool_calls == 1


async def test_a_tool_with_side_effects_needs_an_approval(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    result = await cluster().run("tool", [tmp_path], task="run rm a.txt")
    assert result.state is RunState.DENIED
    assert "shell" in result.error
