"""A repair from end to end: approvals, events, the applied diff, and what stops it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget
from agents.api.errors import InvalidTask
from agents.api.events import RunEventType, RunState
from agents.plugins.registry import Registry
from agents.project_tests.results import TestResults
from agents.repair.project_root import find_project
from agents.repair.repair_run import RepairOptions
from agents.repair.work_copy import WorkCopy
from agents.reports.markdown import markdown_of
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.service.local_service import LocalRunService
from agents.service.run_request import RunRequest, request_from_fields
from app.cli import cli

pytestmark = pytest.mark.usefixtures("quick")
FIX = "if values else 0.0"


@pytest.fixture
def parts(detector):
    spec = AgentSpec("edges", "audit", "Finds.", "You find.", (), (detector.name,), "Findings")
    return {
        "registry": Registry(detectors={detector.name: detector}, outputs={}, procedures={}),
        "roster": Roster({"edges": spec}),
    }


def options(**given):
    return RepairOptions(agents=("edges",), **given)


class Person:
    """Answers approvals by the name of the tool, and remembers what was asked."""

    def __init__(self, **answers):
        self.approvals = Approvals()
        self.asked = []
        self._answers = answers
        self.approvals.on_change(self._answer)

    def _answer(self):
        for request in self.approvals.pending:
            self.asked.append(request)
            self.approvals.decide(request.id, self._answers.get(request.tool, "deny"))


async def test_with_every_approval_the_diff_is_applied(parts, project, files):
    person = Person(run_tests="once", apply_repair="once")
    events = []
    cluster = Cluster(**parts, approvals=person.approvals)
    result = await cluster.repair(
        project, options=options(), on_start=lambda run: run.log.follow(events.append)
    )
    assert (result.state, result.passed, result.score, result.applied) == (
        RunState.OK,
        True,
        100,
        True,
    )
    assert [one.tool for one in person.asked] == ["run_tests", "apply_repair"]
    assert person.asked[1].arguments == result.diff
    assert re.fullmatch(r"2 files, diff [0-9a-f]{12}", person.asked[1].target)
    assert FIX in (project / "stats.py").read_text()
    assert len(files(project)) == 3
    kinds = [one.type for one in events]
    assert kinds.index(RunEventType.FINDING) < kinds.index(RunEventType.PATCH_ACCEPTED)
    assert [one.data["state"] for one in events if one.type is RunEventType.RUN_STATE] == [
        "running",
        "ok",
    ]
    (accepted,) = (one for one in events if one.type is RunEventType.PATCH_ACCEPTED)
    assert "all tests pass" in accepted.data["reason"]


async def test_denied_tests_repair_nothing(parts, project, files):
    before = files(project)
    person = Person()
    result = await Cluster(**parts, approvals=person.approvals).repair(project, options=options())
    assert (result.passed, result.diff, result.rounds) == (False, "", ())
    assert [one.rule for one in result.findings] == ["unguarded-division"]
    assert "only tests can prove a repair" in result.notes[0]
    assert files(project) == before


async def test_a_denied_apply_leaves_the_tree_and_shows_the_diff(parts, project, files):
    before = files(project)
    person = Person(run_tests="once")
    result = await Cluster(**parts, approvals=person.approvals).repair(project, options=options())
    assert (result.passed, result.applied) == (True, False)
    assert FIX in result.diff
    assert files(project) == before


@pytest.mark.parametrize(("apply", "mode"), [(False, "auto"), (True, "auto"), (False, "deny")])
async def test_modes_that_ask_nobody(parts, project, apply, mode):
    person = Person()
    cluster = Cluster(**parts, approvals=person.approvals, mode=mode)
    result = await cluster.repair(project, options=options(apply=apply, mode=mode))
    assert person.asked == []
    assert result.applied is apply
    assert bool(result.diff) is (mode == "auto")
    assert (FIX in (project / "stats.py").read_text()) is apply


async def test_a_tree_that_changes_meanwhile_is_not_written_to(parts, project):
    class Editing(Person):
        def _answer(self):
            if self.approvals.pending and self.approvals.pending[0].tool == "apply_repair":
                (project / "tests" / "test_stats.py").write_text("# mine\n")
            super()._answer()

    person = Editing(run_tests="once", apply_repair="once")
    result = await Cluster(**parts, approvals=person.approvals).repair(project, options=options())
    assert result.state is RunState.FAILED
    assert "tests/test_stats.py" in result.error
    assert FIX not in (project / "stats.py").read_text()
    assert (project / "tests" / "test_stats.py").read_text() == "# mine\n"
    assert FIX in result.diff


async def test_a_cancelled_repair_delivers_what_it_has(parts, project, files):
    before = files(project)
    cancelled = asyncio.Event()

    class Leaving(Person):
        def _answer(self):
            if self.approvals.pending and self.approvals.pending[0].tool == "apply_repair":
                cancelled.set()
            else:
                super()._answer()

    person = Leaving(run_tests="once")
    cluster = Cluster(**parts, approvals=person.approvals)
    result = await cluster.repair(project, options=options(), cancelled=cancelled)
    assert (result.state, result.applied) == (RunState.CANCELLED, False)
    assert len(result.accepted) == 1
    assert FIX in result.diff
    assert files(project) == before


async def test_a_spent_budget_ends_it(parts, project):
    spent = options(mode="auto", budget=Budget(seconds=0.0))
    result = await Cluster(**parts, mode="auto").repair(project, options=spent)
    assert result.state is RunState.EXHAUSTED
    assert "0 s" in result.error


async def test_only_the_named_part_is_audited(parts, project):
    (project / "pyproject.toml").write_text("")
    (project / "other").mkdir()
    (project / "other" / "more.py").write_text((project / "stats.py").read_text())
    result = await Cluster(**parts, mode="auto").repair(
        project / "other", options=options(mode="auto")
    )
    assert {one.finding.file for one in result.accepted} == {"other/more.py"}
    assert result.passed


async def test_two_findings_of_one_file_are_both_repaired_though_lines_move(parts, project):
    text = (project / "stats.py").read_text()
    more = text.replace(
        "def double",
        "def average(values: list[int]) -> float:\n    return sum(values) / len(values)\n\n\ndef double",
    )
    (project / "stats.py").write_text(
        more.replace("    return sum", "    # Sums them.\n    return sum")
    )
    result = await Cluster(**parts, mode="auto").repair(project, options=options(mode="auto"))
    assert len(result.accepted) == 2
    assert result.findings == ()


def test_a_project_is_the_nearest_folder_with_a_mark(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    inner = tmp_path / "src" / "pkg"
    inner.mkdir(parents=True)
    (inner / "a.py").write_text("")
    assert find_project(inner).root == tmp_path
    assert find_project(inner / "a.py").scope == "src/pkg/a.py"
    assert find_project(tmp_path).scope == ""
    assert find_project(inner, within=[tmp_path / "src"]).root == inner
    with pytest.raises(InvalidTask, match="no file or folder"):
        find_project(tmp_path / "missing")


# With the built-in auditors: the service behind the screen and HTTP, and the command.

WRITER = '''"""Publishes files."""

import os


def publish(path: str) -> None:
    os.chmod(path, 0o777)
'''
WRITER_TEST = """
from writer import publish

def test_it(tmp_path):
    (tmp_path / "a").touch()
    publish(str(tmp_path / "a"))
    assert (tmp_path / "a").stat().st_mode & 0o400
"""


@pytest.fixture
def writer(tmp_path):
    root = tmp_path / "writer"
    root.mkdir()
    (root / "writer.py").write_text(WRITER)
    (root / "test_writer.py").write_text(WRITER_TEST)
    (root / "pyproject.toml").write_text("")
    return root


@pytest.fixture
def service(writer):
    made = LocalRunService(lambda: Cluster(approvals=Approvals()), roots=[writer])
    yield made
    made.close()


def test_the_service_runs_a_repair_with_its_approvals(service, writer):
    finished = threading.Event()
    asked = []

    def changed():
        for approval in service.approvals():
            if approval.id not in [one.id for one in asked]:
                asked.append(approval)
                # Approvals are answered from another thread than the run's.
                threading.Thread(target=service.decide, args=(approval.id, "once")).start()
        if run and service.result(run[0]) is not None:
            finished.set()

    run = []
    service.on_change(changed)
    run.append(service.start(RunRequest("repair", "repair", (".",), use_model=False)))
    changed()
    assert finished.wait(60)
    result = service.result(run[0])
    assert (result["state"], result["output"]["applied"]) == ("ok", True)
    assert "0o700" in (writer / "writer.py").read_text()
    assert [one.tool for one in asked] == ["run_tests", "apply_repair"]
    (view,) = service.runs()
    assert view.state is RunState.OK
    assert [row.agent for row in view.rows] == ["audit", "tests", "round 1", "apply"]
    assert {row.state for row in view.rows} == {RunState.OK}
    assert not any(row.waits for row in view.rows)
    assert re.search(r"accepted \S+ writer.py:7", markdown_of("repair", result))


def test_a_path_outside_the_service_s_folder_is_refused(service, writer):
    with pytest.raises(InvalidTask, match="outside"):
        service.start(RunRequest("repair", "repair", ("..",)))


def test_a_repair_needs_one_path_and_its_name():
    for wrong in (
        {"name": "other", "paths": ["."]},
        {"name": "repair"},
        {"name": "repair", "paths": ["a", "b"]},
    ):
        with pytest.raises(InvalidTask, match="one path"):
            request_from_fields({"kind": "repair", **wrong})


def invoke(*arguments):
    return CliRunner().invoke(cli, ["agents", "repair", *map(str, arguments)])


def test_the_command_applies_and_prints_one_json_object(writer, tmp_path):
    done = invoke(
        writer, "--no-model", "--approve", "auto", "--apply", "--json", "--record", tmp_path / "log"
    )
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["output"]["applied"]
    assert re.search(r"accepted \S+ writer.py:7", done.stderr)
    assert "0o700" in (writer / "writer.py").read_text()
    assert json.loads((tmp_path / "log" / "result.json").read_text()) == result
    assert (tmp_path / "log" / "repair.diff").read_text() == result["output"]["diff"]
    kinds = [
        json.loads(line)["type"]
        for line in (tmp_path / "log" / "trajectory.jsonl").read_text().splitlines()
    ]
    assert "patch_accepted" in kinds


def test_the_command_shows_the_diff_without_applying_it(writer, files):
    before = files(writer)
    done = invoke(writer, "--no-model", "--approve", "auto")
    assert done.exit_code == 0
    assert "+    os.chmod(path, 0o700)" in done.stdout
    assert "the diff is not applied" in done.stdout
    assert files(writer) == before


def test_the_command_s_other_statuses(writer, tmp_path):
    assert invoke(writer, "--no-model", "--approve", "deny").exit_code == 1
    assert invoke(tmp_path / "missing", "--no-model").exit_code == 2
    for wrong in (
        ["--approve", "maybe"],
        ["--min-severity", "huge"],
        ["--apply", "--approve", "deny"],
    ):
        done = invoke(writer, "--no-model", *wrong)
        assert done.exit_code == 2
        assert "Traceback" not in done.output
    unknown = invoke(writer, "--no-model", "--agents", "nobody")
    assert unknown.exit_code == 2
    assert "nobody" in unknown.stderr


def test_tests_that_cannot_run_are_no_failure(writer, monkeypatch):
    async def run(*paths, **more):
        return TestResults(problem="The package orm is not installed.")

    monkeypatch.setattr("agents.repair.heal.run_tests", run)
    (writer / "writer.py").write_text("x = 1\n")
    done = invoke(writer, "--no-model", "--approve", "auto", "--json")
    result = json.loads(done.stdout)
    assert done.exit_code == 3
    assert (result["state"], result["output"]["passed"]) == ("ok", None)
    assert "The package orm is not installed." in result["output"]["not_judged"]
    assert "only tests can prove a repair" in result["notes"][0]


def test_kill_9_in_the_middle_leaves_the_tree_untouched(writer, tmp_path, files):
    started = tmp_path / "started"
    (writer / "test_slow.py").write_text(
        f"import time\nfrom pathlib import Path\n\ndef test_slow():\n    Path({str(started)!r}).touch()\n    time.sleep(60)\n"
    )
    before = files(writer)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = "import asyncio, sys; from agents import Cluster; from agents.repair.repair_run import RepairOptions; "
    command += "asyncio.run(Cluster(mode='auto').repair(sys.argv[1], options=RepairOptions(mode='auto', apply=True)))"
    process = subprocess.Popen(
        [sys.executable, "-c", command, str(writer)],
        cwd=Path(__file__).parents[4],
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    try:
        copies = []
        while process.poll() is None and not copies:
            copies = list(temporary.glob("pravaha-repair-*/tree/*/test_slow.py"))
            time.sleep(0.02)  # another process: there is nothing to wait on
        assert copies
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert files(writer) == before
    assert list(temporary.glob("pravaha-repair-*"))  # it was killed before it could remove its copy


def test_copies_of_killed_processes_are_removed(writer, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stale = tmp_path / f"pravaha-repair-{gone.pid}-x"
    kept = tmp_path / f"pravaha-repair-{os.getpid()}-x"
    for folder in (stale, kept):
        folder.mkdir()
    with WorkCopy(writer):
        assert not stale.exists()
        assert kept.exists()


# A project whose tests fail.

SHOP = '''"""Prices."""


def due(pieces: int, cents: int) -> int:
    """A tenth less for ten pieces and more."""
    whole = pieces * cents
    if pieces > 10:
        return whole - whole // 10
    return whole
'''
SHOP_TEST = """from shop import due

def test_nine():
    assert due(9, 100) == 900

def test_ten():
    assert due(10, 100) == 900
"""


@pytest.fixture
def shop(tmp_path):
    root = tmp_path / "shop"
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    (root / "test_shop.py").write_text(SHOP_TEST)
    (root / "pyproject.toml").write_text("")
    return root


async def test_a_failing_test_is_a_finding_that_is_repaired_before_all_others(parts, shop):
    events = []
    result = await Cluster(**parts, mode="auto").repair(
        shop, options=options(mode="auto"), on_start=lambda run: run.log.follow(events.append)
    )
    assert (result.state, result.passed) == (RunState.OK, True)
    (decision,) = result.failing_tests
    assert decision.accepted
    assert result.accepted == [decision]
    assert "+    if pieces >= 10:" in result.diff
    nodes = [one.node for one in events if one.data.get("state") == "running"]
    assert nodes == ["", "audit", "tests", "failing tests"]
    fields = result.fields()
    assert [one["finding"]["rule"] for one in fields["failing_tests"]] == ["failing-test"]
    assert fields["output"]["decisions"][0].startswith("accepted failing-test shop.py:4:")
    assert json.dumps(fields)


async def test_a_test_that_nothing_mends_is_told_and_the_repair_is_not_passed(parts, shop):
    (shop / "test_shop.py").write_text(
        SHOP_TEST + "\ndef test_all():\n    assert due(1, 1) == 77\n"
    )
    result = await Cluster(**parts, mode="auto").repair(shop, options=options(mode="auto"))
    assert (result.state, result.passed) == (RunState.OK, False)
    assert "+    if pieces >= 10:" in result.diff
    assert "1 test still fails; it judges no other repair." in result.notes
    assert "reaches the bar" in result.summary()
    assert "1 test fails" in result.summary()


async def test_denied_tests_say_nothing_about_failing_ones(parts, shop):
    result = await Cluster(**parts, approvals=Person().approvals).repair(shop, options=options())
    assert (result.failing_tests, result.diff) == ((), "")
    assert "the tests were not run" in result.notes[0]
    assert result.nothing_to_repair


def test_the_command_prints_a_line_for_each_thing_about_a_failing_test(shop):
    done = invoke(shop, "--no-model", "--approve", "auto")
    assert done.exit_code == 0, done.output
    lines = done.stderr.splitlines()
    for start in (
        "failing test_shop.py::test_ten: test_ten fails: ",
        "suspects of test_shop.py::test_ten: due (",
        "2 usual slips tried, passed: '>=' for '>' in due; dropped: 1 by the failing test",
        "which repair: '>=' for '>' in due",
        "accepted failing-test shop.py:4: 1 failing test passes now, and all that passed still do.",
    ):
        assert any(one.startswith(start) for one in lines), (start, lines)
    assert "+    if pieces >= 10:" in done.stdout
