"""The project's own tests as a part of the verdict: run by the shell, after an approval."""

import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.outputs.verdict import Verdict
from agents.plugins.registry import Registry
from agents.procedures.audit.output_verifier import run
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.tools.tool import Effect, Tool, ToolOutput
from tests.unit.agents.project_tests.conftest import make_venv

PYTEST = "./.venv/bin/python -m pytest -q -p no:cacheprovider --tb=short"


class Arguments(BaseModel):
    command: str
    seconds: int
    keep: bool


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
    (tmp_path / "test_shop.py").write_text("import pytest\n\ndef test_x():\n    assert True\n")
    make_venv(tmp_path / ".venv", "pytest")
    return tmp_path


async def test_failed_tests_fail_the_verdict(project):
    result, asked = await verdict_of(project, "..F\n1 failed, 2 passed in 0.1s", 1)
    assert asked == [PYTEST]
    assert not result.output.passed
    assert "1 test failed." in result.output.reasons
    assert result.output.reasons[0] == (
        "100 of 100 by the detectors' findings (no findings); 1 test failed, 2 passed."
    )
    passed, _ = await verdict_of(project, "3 passed in 0.1s", 0)
    assert passed.output.passed
    assert passed.output.headline() == "Passed."
    assert passed.output.reasons == [
        "100 of 100 by the detectors' findings (no findings); 3 tests passed.",
        "The tests ran with the project's environment .venv, because it lies in the project's folder.",
    ]


async def test_tests_that_may_not_run_leave_the_verdict_open(project):
    result, _ = await verdict_of(project, "", 0, allowed=False)
    assert result.output.passed is None
    assert result.output.headline().startswith(
        "Not judged: the tests did not run. They were not run"
    )
    (note,) = result.notes
    assert f"were not run ({PYTEST}): shell was denied: later" in note


@pytest.mark.parametrize(
    ("text", "status"),
    [("There is no sandbox.", None), ("No module named pytest", 1), ("not found", 127), ("", 5)],
)
async def test_tests_that_cannot_run_leave_the_verdict_open(text, status, project):
    result, _ = await verdict_of(project, text, status)
    assert result.output.decision == "not judged"
    assert "; the tests did not run." in result.output.reasons[0]
    assert any("could not be judged" in note for note in result.notes)


async def test_code_without_tests_is_not_judged_and_nothing_is_asked(tmp_path):
    (tmp_path / "shop.py").write_text("x = 1\n")
    result, asked = await verdict_of(tmp_path, "", 0)
    assert asked == []
    assert result.output.headline() == (
        "Not judged: the tests did not run. The project has no tests."
    )


async def test_what_is_no_code_passes_without_tests(tmp_path):
    (tmp_path / "notes.md").write_text("Nothing.\n")
    result, asked = await verdict_of(tmp_path, "", 0)
    assert asked == []
    assert result.output.passed


async def test_a_package_that_is_not_installed_is_no_failed_test(project):
    text = "E   ModuleNotFoundError: No module named 'flask'\n1 error in 0.1s"
    result, _ = await verdict_of(project, text, 2)
    assert result.output.decision == "not judged"
    assert "The package flask is not installed in the project's environment .venv" in (
        result.output.not_judged
    )


async def test_a_module_of_the_project_that_is_missing_is_a_failed_test(project):
    text = "E   ModuleNotFoundError: No module named 'shop.prices'\n1 error in 0.1s"
    result, _ = await verdict_of(project, text, 2)
    assert result.output.decision == "failed"


async def test_options_whose_plugins_are_missing_are_left_out(project):
    text = "pytest: error: unrecognized arguments: --cov=shop"
    result, asked = await verdict_of(project, text, 4)
    assert asked == [PYTEST, f"{PYTEST} -o addopts= -o required_plugins= -o filterwarnings="]
    assert result.output.decision == "not judged"
