"""What the outcome of a project's tests means for a verdict. Program code passes by its tests alone."""

from collections.abc import Mapping
from typing import Any

from agents.workspace.workspace import Workspace

CODE = frozenset(
    ["python", "javascript", "typescript", "tsx", "jsx", "go", "rust", "java", "c", "cpp", "csharp", "ruby",
     "php", "kotlin", "swift", "scala"]
)  # fmt: skip
"""Languages of programs that have tests."""


def has_code(workspace: Workspace) -> bool:
    """Whether there is program code, which only tests can judge."""
    return any(file.language in CODE for file in workspace)


def tests_outcome(tests: Mapping[str, Any]) -> tuple[str, str, str]:
    """From the members of an outcome: why it fails, why it decides nothing, and the outcome in words."""
    if not tests:
        return "", "", ""
    problem = str(tests.get("problem") or "")
    if problem:
        return "", f"the tests did not run. {problem}", "the tests did not run"
    failed, passed = tests.get("failed", 0), tests.get("passed", 0)
    failed = failed if isinstance(failed, int) else 0
    passed = passed if isinstance(passed, int) else 0
    if failed > 0:
        text = f"{failed} {'test' if failed == 1 else 'tests'} failed"
        return f"{text}.", "", f"{text}, {passed} passed"
    if tests.get("ok") is False:
        return "The tests failed.", "", "the tests failed"
    if tests.get("not_run"):
        return "", f"a part of the tests did not run. {tests['not_run']}", f"{passed} tests passed"
    if passed == 0 and not tests.get("ok"):
        return "", "no test ran.", "no test ran"
    return "", "", "the tests passed" if not passed else f"{_tests(passed)} passed"


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"
