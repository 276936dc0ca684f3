"""Running a project's own tests through the shell, which asks for an approval."""

import re
from collections.abc import Mapping
from typing import Any

from agents.api.errors import BudgetExhausted, InvalidTask, PermissionDenied
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.workspace.workspace import Workspace

_PYTHON_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_GO_TEST = re.compile(r"_test\.go$")
_NPM_TEST = re.compile(r'"test"\s*:\s*"(?!echo \\"Error: no test)')
_COUNT = re.compile(r"\b(\d{1,6}) (passed|failed|errors?)\b")


TESTS_S = 600
_NOT_RUN = frozenset([5, 126, 127])
"""Exit statuses that say nothing about the tests: pytest found none; the command cannot be run."""


def command_of(workspace: Workspace) -> str:
    """The command that runs the project's tests; empty if it has none that are known."""
    paths = [file.path for file in workspace]
    if any(_PYTHON_TEST.search(path) for path in paths):
        return "python -m pytest -q"
    if workspace.get("Cargo.toml") is not None:
        return "cargo test"
    if workspace.get("go.mod") is not None and any(_GO_TEST.search(path) for path in paths):
        return "go test ./..."
    package = workspace.get("package.json")
    return "npm test" if package is not None and _NPM_TEST.search(package.text) else ""


async def project_tests(task: AgentTask, context: ProcedureContext) -> Mapping[str, Any] | None:
    """How the project's tests went: `ok`, and `passed` and `failed` where the output counts them.

    None if there are none, or if they could not be run, which a note tells. Denying them is no failure.
    """
    given = task.inputs.get("tests")
    if isinstance(given, Mapping):
        return given
    command = command_of(task.workspace)
    if not command or "shell" not in context.available_tools:
        return None
    try:
        output = await context.tool("shell", command=command, seconds=TESTS_S)
    except (PermissionDenied, BudgetExhausted, InvalidTask) as error:
        context.note(f"The project's tests were not run ({command}): {error}")
        return None
    text, status = str(output["text"]), output.get("status")
    if not isinstance(status, int) or status in _NOT_RUN or "No module named pytest" in text:
        context.note(f"The project's tests could not be run ({command}): {_last_line(text)}")
        return None
    return outcome_of(text, status)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


def outcome_of(text: str, status: int) -> dict[str, Any]:
    """The outcome by the command's exit status and the last line of its output that counts tests."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        found = {word.rstrip("s"): int(number) for number, word in _COUNT.findall(line)}
        counts = found or counts
    if not counts:
        return {"ok": status == 0}
    return {
        "ok": status == 0,
        "passed": counts.get("passed", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0),
    }
