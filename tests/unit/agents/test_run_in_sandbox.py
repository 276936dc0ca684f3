"""Agents that run a project's code do so in the sandbox: its tests, and profiles of its programs."""

import os

import pytest

from agents import Cluster
from agents.procedures.audit.performance_profiler import hot_functions
from agents.project_tests.run import report_of, run_tests
from agents.runs.approval_rules import parse_rule
from agents.runs.tool_settings import ToolSettings
from agents.sandbox import choice
from tests.unit.agents.sandbox.conftest import MAKERS, sandbox_here

needs_sandbox = pytest.mark.skipif(
    all(isinstance(sandbox_here(name), str) for name in MAKERS), reason="no sandbox here"
)

CODE = """
def slow():
    return sum(i * i for i in range(400_000))

def quick():
    return 1

slow()
quick()
"""


@needs_sandbox
async def test_tests_reach_neither_files_outside_nor_the_network(tmp_path):
    root, secret = tmp_path / "project", tmp_path / "secret.txt"
    root.mkdir()
    secret.write_text("secret")
    (root / "test_outside.py").write_text(f"""
import os, socket

def test_reads():
    open({str(secret)!r}).read()

def test_writes():
    open({str(tmp_path / "new")!r}, "w")

def test_connects():
    socket.create_connection(("127.0.0.1", 9), timeout=1)

def test_environment():
    assert "PRAVAHA_TEST_SECRET" in os.environ

def test_works(tmp_path):
    (tmp_path / "x").write_text("x")
    open("made", "w")
""")
    os.environ["PRAVAHA_TEST_SECRET"] = "x"
    try:
        results = await run_tests(root)
    finally:
        del os.environ["PRAVAHA_TEST_SECRET"]
    assert results.problem == ""
    refused = {
        f"test_outside::{name}" for name in ("test_reads", "test_connects", "test_environment")
    }
    assert results.failed >= refused
    assert "test_outside::test_works" in results.passed
    assert (root / "made").exists()
    # Where /tmp is private, the file was written there: what counts is that it is not here.
    assert not (tmp_path / "new").exists()


@needs_sandbox
async def test_tests_that_do_not_end_are_killed(tmp_path):
    (tmp_path / "test_a.py").write_text("while True: pass\n")
    results = await run_tests(tmp_path, timeout_s=2)
    assert results.problem == "The tests took more than 2 s."


@needs_sandbox
async def test_a_report_that_the_tests_replaced_by_a_link_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "report").write_text("<testsuite/>")
    (tmp_path / "link").symlink_to(tmp_path / "report")
    assert report_of(tmp_path / "link") is None
    assert report_of(tmp_path / "report") == b"<testsuite/>"


async def test_without_a_sandbox_tests_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "_found", {})
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    monkeypatch.setattr(choice, "_kernel", lambda: (0, False))
    (tmp_path / "test_a.py").write_text("open('made', 'w')\ndef test_a(): pass\n")
    results = await run_tests(tmp_path)
    assert results.problem.startswith("Commands cannot be run in a sandbox here.")
    assert not (tmp_path / "made").exists()


def project(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def cluster(*rules, mode="ask"):
    return Cluster(
        mode=mode, settings=ToolSettings(rules=tuple(parse_rule(rule) for rule in rules))
    )


@needs_sandbox
async def test_the_profiler_reports_where_the_time_goes(tmp_path):
    root = project(tmp_path, work=CODE)
    one = cluster("shell: python -m cProfile *")
    result = await one.run("performance_profiler", [root], task="profile: work.py")
    hot = [finding for finding in result.findings if finding.rule == "hot-function"]
    assert {finding.file for finding in hot} == {"work.py"}
    assert "def slow" in " ".join(f.evidence for f in hot) or "range(400_000)" in hot[0].evidence
    assert "of the profiled time" in hot[0].message


async def test_without_an_approval_nothing_is_profiled(tmp_path):
    root = project(tmp_path, work="open('made', 'w')\n")
    result = await cluster().run("performance_profiler", [root], task="profile: work.py")
    assert not (root / "made").exists()
    assert any(
        note.startswith("Nothing was profiled: shell needs an approval") for note in result.notes
    )


async def test_a_task_that_asks_for_no_profile_runs_nothing(tmp_path):
    root = project(tmp_path, work="open('made', 'w')\n")
    result = await cluster(mode="auto").run("performance_profiler", [root], task="Is it slow?")
    assert not (root / "made").exists()
    assert result.usage.tool_calls == 0


TABLE = """\
hello
         1,203 function calls (1,190 primitive calls) in 2.000 seconds

   Ordered by: internal time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
    12/3    1.200    0.100    1.300    0.100 src/a.py:7(walk)
        1    0.300    0.300    2.000    2.000 {built-in method builtins.exec}
        4    0.250    0.063    0.250    0.063 /lib/python3/b.py:1(load)
      900    0.100    0.000    0.100    0.000 src/a.py:20(small)
"""


def test_functions_are_reported_by_their_share_of_the_time():
    found = list(hot_functions(TABLE))
    assert [(one.file, one.line, one.name, one.calls) for one in found] == [
        ("src/a.py", 7, "walk", 12),
        ("/lib/python3/b.py", 1, "load", 4),
    ]
    assert found[0].share == pytest.approx(0.6)


def test_an_output_without_a_profile_has_no_functions():
    assert list(hot_functions("no such file")) == []


@needs_sandbox
async def test_the_verifier_runs_the_tests_if_it_is_allowed_to(tmp_path):
    root = project(tmp_path, test_a="def test_a():\n    assert False\n")
    one = cluster("shell: *")
    result = await one.run("output_verifier", [root])
    assert not result.output.passed
    assert "1 test failed." in result.output.reasons
