"""A project whose `mean` divides by zero, and a detector that sees it."""

import textwrap

import pytest

from agents.api.finding import Severity
from agents.detectors.detector import Detector, Rule
from tests.fakes.quick_tests import quick_tests

SOURCE = textwrap.dedent(
    '''
    """Small statistics."""


    def mean(values: list[float]) -> float:
        return sum(values) / len(values)


    def double(values: list[float]) -> list[float]:
        return [2 * value for value in values]
    '''
).lstrip()
TESTS = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from stats import double

    def test_double():
        assert double([1, 3]) == [2, 6]
    """
)
DIVISION = Rule("unguarded-division", Severity.HIGH, "Division by zero", cwe=369)


def find_division(workspace, context):
    for file in workspace.of("python"):
        for number, line in enumerate(file.lines, 1):
            if "/ len(values)" in line and "if values" not in line and "# noqa" not in line:
                yield DIVISION.at(file, number, "values may be empty.")


@pytest.fixture
def detector():
    return Detector("edge_cases", "Finds divisions.", find_division, (DIVISION,))


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "stats.py").write_text(SOURCE)
    (root / "tests" / "test_stats.py").write_text(TESTS)
    return root


@pytest.fixture
def quick(monkeypatch):
    """Run the project's tests without this environment's plugins."""
    monkeypatch.setattr("agents.repair.acceptance.run_tests", quick_tests)
    monkeypatch.setattr("agents.repair.heal.run_tests", quick_tests)


@pytest.fixture
def files():
    """The contents of all files beneath a folder, by relative path."""

    def read(root):
        return {
            str(one.relative_to(root)): one.read_bytes() for one in root.rglob("*") if one.is_file()
        }

    return read
