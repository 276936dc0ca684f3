"""Repair in a copy: only changes that tests prove are accepted. `test_gate.py` has many more changes that cheat."""

import textwrap

import pytest

from agents.api.errors import InvalidTask
from agents.api.finding import Severity
from agents.detectors.detector import Detector, Rule
from agents.outputs.patch import Patch
from agents.project_tests.run import run_tests
from agents.repair.heal import HealOptions, heal
from agents.repair.work_copy import WorkCopy
from agents.text.unified_diff import make_diff

pytestmark = pytest.mark.usefixtures("quick")

SOURCE = "def mean(values):\n    return sum(values) / len(values)\n"
FIXED = "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n"
TESTS = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from stats import mean

    def test_mean():
        assert mean([1, 3]) == 2
    """
)
DIVISION = Rule("unguarded-division", Severity.HIGH, "Division by zero", cwe=369)


def find_division(workspace, context):
    for file in workspace.of("python"):
        for number, line in enumerate(file.lines, 1):
            if "/ len(values)" in line and "if values" not in line and "# noqa" not in line:
                yield DIVISION.at(file, number, "values may be empty.")


DETECTOR = Detector("edge_cases", "Finds divisions.", find_division, (DIVISION,))


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "stats.py").write_text(SOURCE)
    (root / "tests" / "test_stats.py").write_text(TESTS)
    return root


def proposing(*changes):
    async def propose(finding, workspace):
        diff = "".join(make_diff(path, old, new) for path, old, new in changes)
        return Patch(diff=diff, reason="A proposal.")

    return propose


async def healed(project, *changes):
    return await heal(project, [DETECTOR], options=HealOptions(propose=proposing(*changes)))


async def test_a_proved_repair_is_accepted_and_the_original_untouched(project):
    result = await healed(project, ("stats.py", SOURCE, FIXED))
    (accepted,) = result.accepted
    assert "behaviour" in accepted.reason
    assert result.passed
    assert (result.score, result.findings) == (100, ())
    assert "if values else 0.0" in result.diff
    assert "tests/test_unguarded_division" in result.diff
    assert (project / "stats.py").read_text() == SOURCE
    assert [one.name for one in (project / "tests").iterdir()] == ["test_stats.py"]


WRONG = FIXED.replace("/ len(values)", "/ (len(values) + 1)")
TRAPS = {
    "a wrong result": [("stats.py", SOURCE, WRONG)],
    "a deleted test": [("stats.py", SOURCE, FIXED), ("tests/test_stats.py", TESTS, None)],
    "a diff that does not apply": [("stats.py", SOURCE + "\n\nx = 1\n", FIXED)],
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
async def test_a_change_that_cheats_is_rejected_and_taken_back(project, trap):
    result = await healed(project, *TRAPS[trap])
    assert not result.accepted
    assert result.rejected[0].reason
    assert result.diff == ""
    assert [one.rule for one in result.findings] == ["unguarded-division"]
    assert not result.passed


async def test_the_built_in_fixers_repair_what_they_know(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "stats.py").write_text(SOURCE)
    (root / "test_stats.py").write_text(TESTS.replace("parents[1]", "parent"))
    result = await heal(root, [DETECTOR])
    assert [one.finding.rule for one in result.accepted] == ["unguarded-division"]


async def test_results_of_tests_are_told_apart(project):
    (project / "tests" / "test_bad.py").write_text("def test_no():\n    assert False\n")
    results = await run_tests(project)
    assert {name.rpartition("::")[2] for name in results.passed} == {"test_mean"}
    assert {name.rpartition("::")[2] for name in results.failed} == {"test_no"}


async def test_tests_that_never_end_are_killed(project):
    (project / "tests" / "test_slow.py").write_text("def test_slow():\n    while True: pass\n")
    results = await run_tests(project, timeout_s=3.0)
    assert "3 s" in results.problem
    with pytest.raises(InvalidTask):
        raise InvalidTask(results.problem)


def test_a_copy_has_no_links_and_disappears(project):
    (project / "link").symlink_to("/etc/passwd")
    with WorkCopy(project) as copy:
        root = copy.root
        assert sorted(one.name for one in root.iterdir()) == ["stats.py", "tests"]
        assert copy.diff() == ""
    assert not root.exists()
