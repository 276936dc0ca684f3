"""What the gate accepts. `CHEATS` are patches that seem to repair; the tests of the project do not see `mean`."""

import shutil
from pathlib import Path

import pytest

from agents.api.finding import Finding, Severity
from agents.detectors.audit import EDGE_CASES
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.outputs.patch import Patch
from agents.procedures.audit.patch_applier import patch_of
from agents.procedures.audit.test_generator import reproducing_tests
from agents.project_tests.results import TestResults
from agents.repair.acceptance import Gate
from agents.repair.change_check import Findings
from agents.repair.work_copy import WorkCopy
from agents.text.unified_diff import make_diff
from benchmarks.adversarial_patches import CHEATS, cheats

BASELINE = TestResults(passed=frozenset(["tests.test_stats::test_double"]))


class Trial:
    """A gate over a copy of the project, and its only finding."""

    def __init__(self, copy, detector, baseline=BASELINE, **options):
        self.copy = copy
        self.workspace = copy.workspace()
        self.gate = Gate(copy, baseline, [detector], **options)
        (self.finding,) = detector.detect(self.workspace, DetectorContext())

    async def decide(self, diff, tests=None):
        made = reproducing_tests(self.finding, self.workspace) if tests is None else tests
        return await self.gate.decide(self.finding, Patch(diff=diff), made)

    def diff(self, *changes):
        """The diff of texts by path; None for no file."""
        texts = {one.path: one.text for one in self.workspace}
        return "".join(make_diff(path, texts.get(path), new) for path, new in changes)


@pytest.fixture
def copy(project):
    with WorkCopy(project) as opened:
        yield opened


@pytest.fixture
def trial(copy, detector, quick):
    return Trial(copy, detector)


GUARDS = {
    "a conditional": "    return sum(values) / len(values) if values else 0.0",
    "a guard": "    if not values:\n        return 0.0\n    return sum(values) / len(values)",
    "a refusal": '    if not values:\n        raise ValueError("no values")\n    return sum(values) / len(values)',
    "a narrow handler": "    try:\n        return sum(values) / len(values)  # if values\n"
    "    except ZeroDivisionError:\n        return 0.0",
}


@pytest.mark.parametrize("guard", GUARDS)
async def test_right_patches_of_any_shape_are_accepted(trial, guard):
    source = trial.workspace.get("stats.py").text
    fixed = source.replace("    return sum(values) / len(values)", GUARDS[guard])
    # The toy detector looks at single lines.
    fixed = fixed.replace(
        "    return sum(values) / len(values)\n",
        "    return sum(values) / len(values)  # if values\n",
    )
    decision = await trial.decide(trial.diff(("stats.py", fixed)))
    assert decision.accepted, decision.reason
    assert decision.proof == "tests"
    assert decision.test.path in {one.path for one in trial.copy.workspace()}
    assert any(one.endswith(trial.finding.id) for one in trial.gate.baseline.passed)


OF_CALLS = {"another name", "getattr"}
"""Cheats that need a finding about a call; `test_change_check.py` has them."""


@pytest.mark.parametrize("name", [one for one in CHEATS if one not in OF_CALLS])
async def test_cheats_are_rejected_and_taken_back(trial, name):
    made = dict(cheats(trial.finding, trial.workspace))
    decision = await trial.gate.decide(
        trial.finding, made[name], reproducing_tests(trial.finding, trial.workspace)
    )
    assert not decision.accepted, decision.reason
    assert decision.reason
    after = trial.copy.workspace()
    assert [(one.path, one.data) for one in after] == [
        (one.path, one.data) for one in trial.workspace
    ]
    assert trial.copy.diff() == ""


async def test_a_changed_result_that_no_test_sees_is_rejected(trial):
    source = trial.workspace.get("stats.py").text
    wrong = source.replace("/ len(values)", "/ (len(values) + 1)")
    decision = await trial.decide(trial.diff(("stats.py", wrong)))
    assert decision.reason == "The change alters results that have nothing to do with the finding."


async def test_a_test_that_passes_before_shows_nothing(trial):
    (test,) = reproducing_tests(trial.finding, trial.workspace)
    weak = test.model_copy(update={"code": "def test_nothing():\n    pass\n"})
    diff = patch_of(trial.finding, trial.workspace).diff
    decision = await trial.decide(diff, [weak])
    assert decision.reason == (
        "No test shows unguarded-division here: None of the generated tests fails before the change. "
        "Nobody approved it."
    )


async def test_a_patch_that_changes_its_own_test_is_rejected(trial):
    (test,) = reproducing_tests(trial.finding, trial.workspace)
    diff = patch_of(trial.finding, trial.workspace).diff + make_diff(test.path, None, "x = 1\n")
    decision = await trial.decide(diff)
    assert "changes no tests" in decision.reason


async def test_a_person_may_keep_what_tests_do_not_prove(copy, detector, quick):
    asked = []

    async def approve(finding, patch, doubt):
        asked.append(doubt)
        return True

    trial = Trial(copy, detector, approve=approve)
    decision = await trial.decide(patch_of(trial.finding, trial.workspace).diff, [])
    assert (decision.accepted, decision.proof) == (True, "approval")
    assert asked == [
        "No test shows unguarded-division here: No test can show it without knowing what is meant."
    ]


NONE_EQUALITY = Rule("E711", Severity.MEDIUM, "compared with None by ==")


def find_equality(workspace, context):
    for file in workspace.of("python"):
        for number, line in enumerate(file.lines, 1):
            if "== None" in line:
                yield NONE_EQUALITY.at(file, number, "Use `is`.")


@pytest.mark.parametrize("tested", [True, False])
async def test_a_source_check_counts_only_if_tests_run_the_changed_lines(tmp_path, quick, tested):
    root = tmp_path / "project"
    root.mkdir()
    # A method of a class with arguments cannot be called by a generated test.
    (root / "box.py").write_text(
        "class Box:\n    def __init__(self, content):\n        self.content = content\n\n"
        "    def empty(self):\n        return self.content == None\n"
    )
    call = "Box(None).empty()" if tested else "True"
    (root / "test_box.py").write_text(
        f"from box import Box\n\ndef test_empty():\n    assert {call}\n"
    )
    detector = Detector("ruff_bugs", "Finds equality.", find_equality, (NONE_EQUALITY,))
    baseline = TestResults(passed=frozenset(["test_box::test_empty"]))
    with WorkCopy(root) as copy:
        trial = Trial(copy, detector, baseline)
        decision = await trial.decide(patch_of(trial.finding, trial.workspace).diff)
    assert decision.test.kind == "source check"
    assert decision.accepted is tested
    if not tested:
        assert "no test of the project runs the changed lines" in decision.reason


async def test_side_effects_of_tests_do_not_decide_the_next_run(project, copy, detector, quick):
    (project / "tests" / "test_once.py").write_text(
        "from pathlib import Path\n\ndef test_once():\n"
        "    mark = Path(__file__).with_name('mark')\n    assert not mark.exists()\n    mark.touch()\n"
    )
    passed = {*BASELINE.passed, "tests.test_once::test_once"}
    with WorkCopy(project) as again:
        trial = Trial(again, detector, TestResults(passed=frozenset(passed)))
        decision = await trial.decide(patch_of(trial.finding, trial.workspace).diff)
        assert decision.accepted, decision.reason
        assert "mark" not in again.diff()


async def test_a_failing_detector_accepts_nothing(copy, quick):
    def fails_later(workspace, context):
        found = list(find_division_once(workspace))
        if not found:
            raise RuntimeError("the patch crashed me")
        yield from found

    def find_division_once(workspace):
        for file in workspace.of("python"):
            for number, line in enumerate(file.lines, 1):
                if line.strip() == "return sum(values) / len(values)":
                    yield Rule("unguarded-division", Severity.HIGH, "Division", 369).at(
                        file, number, "m"
                    )

    trial = Trial(copy, Detector("edge", "Fails.", fails_later))
    decision = await trial.decide(patch_of(trial.finding, trial.workspace).diff)
    assert decision.reason == "The detector edge failed: the patch crashed me"


CORPUS = Path(__file__).parents[3] / "corpus" / "tuning" / "repairs"


@pytest.mark.parametrize(
    "name", ["weaken", "silence", "wrong_context", "delete_test", "swallow", "broken"]
)
async def test_the_corpus_patches_that_repair_nothing_are_rejected(tmp_path, quick, name):
    root = tmp_path / "repairs"
    shutil.copytree(CORPUS, root, ignore=shutil.ignore_patterns("patches"))
    baseline = TestResults(
        passed=frozenset(
            f"tests.test_pricing::test_{one}"
            for one in ("children_are_free", "youth_pays_half", "adults_pay_all")
        )
    )
    with WorkCopy(root) as copy:
        workspace = copy.workspace()
        (finding,) = (
            one for one in Findings([EDGE_CASES]).of(workspace) if one.rule == "unguarded-division"
        )
        gate = Gate(copy, baseline, [EDGE_CASES])
        patch = Patch(diff=(CORPUS / "patches" / f"{name}.diff").read_text())
        decision = await gate.decide(finding, patch, reproducing_tests(finding, workspace))
        assert not decision.accepted
        assert copy.diff() == ""


# A change that a failing test of the project demands.

DEMAND = """from stats import double, mean

def test_double():
    assert double([1, 3]) == [2, 6]

def test_empty():
    assert mean([]) == 0.0
"""
NAME = "tests.test_stats::test_empty"


@pytest.fixture
def demanding(project, detector, quick):
    file = project / "tests" / "test_stats.py"
    head = file.read_text().partition("from stats")[0]
    file.write_text(head + DEMAND)
    with WorkCopy(project) as copy:
        baseline = TestResults(BASELINE.passed, frozenset([NAME]))
        gate = Gate(copy, baseline, [])
        texts = {one.path: one.text for one in copy.workspace()}
        yield gate, copy, texts


def at_mean(**more):
    return Finding(
        file="stats.py",
        line=4,
        end_line=5,
        rule="failing-test",
        severity=Severity.HIGH,
        message="",
        **more,
    )


async def decide(demanding, *changes, tests=(NAME,)):
    gate, _, texts = demanding
    diff = "".join(make_diff(path, texts.get(path), new) for path, new in changes)
    return await gate.decide_failing(at_mean(), Patch(diff=diff), frozenset(tests))


def mean_with(demanding, body):
    return demanding[2]["stats.py"].replace("    return sum(values) / len(values)\n", body)


async def test_a_failing_test_that_passes_proves_a_change(demanding):
    gate, copy, _ = demanding
    decision = await decide(
        demanding,
        ("stats.py", mean_with(demanding, "    return sum(values) / max(1, len(values))\n")),
    )
    assert decision.accepted, decision.reason
    assert decision.reason == "1 failing test passes now, and all that passed still do."
    assert (decision.proof, decision.test.kind) == ("tests", "behaviour")
    assert gate.baseline.failed == frozenset()
    assert "max(1" in copy.diff()


REFUSED = {
    "it still fails": ("    return sum(values) / len(values) + 0\n", "test_empty still fails"),
    "a name from outside": ("    import os\n    return sum(values) * (os.getpid() * 0.0)\n", "a repair may not use"),
    "a broad handler": (
        "    try:\n        return sum(values) / len(values)\n    except Exception:\n        return 0.0\n",
        "catches every exception",
    ),
    "an unused parameter": ("    return 0.0\n", "no longer uses"),
    "a silencer": ("    return sum(values) / max(1, len(values))  # noqa\n", "silences"),
    "no Python": ("    return sum(values) /\n", "does not parse"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
async def test_what_a_failing_test_does_not_excuse(demanding, case):
    body, reason = REFUSED[case]
    decision = await decide(demanding, ("stats.py", mean_with(demanding, body)))
    assert not decision.accepted
    assert reason in decision.reason
    assert demanding[1].diff() == ""


async def test_a_failing_test_excuses_no_change_of_tests_or_other_functions(demanding):
    right = mean_with(demanding, "    return sum(values) / max(1, len(values))\n")
    texts = demanding[2]
    for changes, reason in (
        (
            [("tests/test_stats.py", texts["tests/test_stats.py"].replace("== 0.0", "is not 1"))],
            "test",
        ),
        ([("stats.py", right.replace("2 * value", "value * 2"))], "other code"),
        ([("stats.py", right), ("more.py", "x = 1\n")], "more.py"),
        ([("conftest.py", "import sys\n")], "conftest.py"),
    ):
        decision = await decide(demanding, *changes)
        assert not decision.accepted
        assert reason in decision.reason


async def test_a_test_that_passed_may_not_fail(demanding):
    gate, _, _ = demanding
    gate.baseline = TestResults(
        frozenset([*BASELINE.passed, "tests.test_stats::gone"]), frozenset([NAME])
    )
    decision = await decide(
        demanding,
        ("stats.py", mean_with(demanding, "    return sum(values) / max(1, len(values))\n")),
    )
    assert "no longer run" in decision.reason


async def test_an_empty_patch_repairs_no_failing_test(demanding):
    decision = await demanding[0].decide_failing(
        at_mean(), Patch(cannot_do="None."), frozenset([NAME])
    )
    assert (decision.accepted, decision.reason) == (False, "None.")
