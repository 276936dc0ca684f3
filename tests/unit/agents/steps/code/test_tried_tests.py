"""Copies of a project in which its tests run."""

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from agents.edits import FileEdit
from agents.project_tests.plan import TestCommand
from agents.project_tests.results import TestResults
from agents.steps.code import tried_tests
from agents.steps.code.tried_tests import TriedTests

PYTEST = TestCommand("pytest", "the environment", "it has pytest", ("python", "-m", "pytest"))


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "shop"
    root.mkdir()
    (root / "prices.py").write_text("RATE = 1\n")
    return root


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_a_copy_has_the_change_and_the_project_does_not(project, scratch):
    async def run(copy: Path, paths, command):
        seen.append({one.name: one.read_text() for one in copy.iterdir()})
        return TestResults(passed=frozenset({"t"}))

    seen: list[dict[str, str]] = []
    edit = FileEdit("prices.py", b"RATE = 1\n", b"RATE = 2\n")
    await TriedTests(project, run).on([edit], more={"test_a.py": "x"})
    assert seen == [{"prices.py": "RATE = 2\n", "test_a.py": "x"}]
    assert (project / "prices.py").read_text() == "RATE = 1\n"
    assert list(scratch.iterdir()) == []


async def test_a_copy_that_is_stopped_in_the_middle_leaves_nothing_behind(
    project, scratch, monkeypatch
):
    began, go_on = threading.Event(), threading.Event()
    real = tried_tests._copied

    def slow(*given):
        began.set()
        go_on.wait()
        return real(*given)

    async def run(copy: Path, paths, command):
        raise AssertionError("it was stopped before")

    monkeypatch.setattr(tried_tests, "_copied", slow)
    task = asyncio.ensure_future(TriedTests(project, run).on([]))
    await asyncio.to_thread(began.wait)
    task.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(scratch.iterdir()) == []


async def test_what_ran_the_tests_first_runs_them_again_and_a_new_test_looks_for_its_own(project):
    async def run(copy: Path, paths, command):
        seen.append(command)
        return TestResults(passed=frozenset({"t"}), command=PYTEST)

    seen: list[TestCommand | None] = []
    tests = TriedTests(project, run)
    await tests.start()
    await tests.on([])
    await tests.on([], more={"test_a.py": "x"}, paths=["test_a.py"])
    assert seen == [None, PYTEST, None]
