"""The project's own tests as a part of the verdict: run by the shell, after an approval."""

import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.outputs.verdict import Verdict
from agents.plugins.registry import Registry
from agents.procedures.audit.output_verifier import run
from agents.procedures.audit.project_tests import command_of, outcome_of
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.tools.tool import Effect, Tool, ToolOutput
from agents.workspace.workspace import Workspace


class Arguments(BaseModel):
    command: str
    seconds: int


async def verdict_of(folder, text, status, *, allowed=True):
    """The verdict over a folder whose shell answers so; and the commands that were asked for."""

    async def shell(arguments, context):
        data = {} if status is None else {"status": status}
        return ToolOutput(text, data, failed=status != 0)

    effects = frozenset({Effect.EXECUTE})
    tool = Tool("shell", "Run.", Arguments, effects, shell, target=lambda given: given.command)
    spec = AgentSpec("v", "audit", "Verifies.", "You verify.", ("shell",), (), "Verdict")
    registry = Registry(tools={"shell": tool}, outputs={"Verdict": Verdict}, procedures={"v": run})
    approvals, asked = Approvals(), []

    def answer():
        for one in approvals.pending:
            asked.append(one.target)
            approvals.decide(one.id, "once" if allowed else "deny", reason="later")

    approvals.on_change(answer)
    cluster = Cluster(registry=registry, roster=Roster({"v": spec}), approvals=approvals)
    return await cluster.run("v", [folder]), asked


@pytest.fixture
def project(tmp_path):
    (tmp_path / "shop.py").write_text("x = 1\n")
    (tmp_path / "test_shop.py").write_text("def test_x():\n    assert True\n")
    return tmp_path


async def test_failed_tests_fail_the_verdict(project):
    result, asked = await verdict_of(project, "..F\n1 failed, 2 passed in 0.1s", 1)
    assert asked == ["python -m pytest -q"]
    assert not result.output.passed
    assert "1 tests failed." in result.output.reasons
    passed, _ = await verdict_of(project, "3 passed in 0.1s", 0)
    assert passed.output.passed


async def test_tests_that_may_not_run_are_a_note_and_no_failure(project):
    result, _ = await verdict_of(project, "", 0, allowed=False)
    assert result.output.passed
    (note,) = result.notes
    assert "were not run (python -m pytest -q): shell was denied: later" in note


@pytest.mark.parametrize(
    ("text", "status"),
    [("There is no sandbox.", None), ("No module named pytest", 1), ("not found", 127), ("", 5)],
)
async def test_tests_that_cannot_run_are_a_note_and_no_failure(text, status, project):
    result, _ = await verdict_of(project, text, status)
    assert result.output.passed
    assert "could not be run" in result.notes[0]


async def test_a_project_without_tests_asks_for_nothing(tmp_path):
    (tmp_path / "shop.py").write_text("x = 1\n")
    _, asked = await verdict_of(tmp_path, "", 0)
    assert asked == []


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"a_test.py": ""}, "python -m pytest -q"),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": "", "a_test.go": ""}, "go test ./..."),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, ""),
        ({"testing.py": "", "go.mod": ""}, ""),
    ],
)
def test_the_command_follows_the_project(files, command):
    assert command_of(Workspace.of_texts(files)) == command


def test_the_last_counts_of_the_output_are_taken():
    text = "suite a: 1 failed\n==== 2 failed, 7 passed, 1 error in 3.1s ====\n[exit status 1]"
    assert outcome_of(text, 1) == {"ok": False, "passed": 7, "failed": 3}
    assert outcome_of("ok", 0) == {"ok": True}
