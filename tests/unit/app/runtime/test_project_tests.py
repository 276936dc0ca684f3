"""The tests of a project after an edit, and what is said about them."""

import pytest

from app.runtime.project_tests import (
    TestsRun,
    markdown_of_tests,
    project_of,
    run_project_tests,
)
from engine.conversations.tree import Verdict


@pytest.mark.parametrize(
    ("run", "verdict", "sentence"),
    [
        (TestsRun(), None, "The project has no tests, so nothing was tested."),
        (TestsRun(1), Verdict.PASSED, "The only test passes."),
        (TestsRun(3), Verdict.PASSED, "All 3 tests pass."),
        (TestsRun(2, 1), Verdict.FAILED, "1 of 3 tests fail."),
        (TestsRun(problem="pytest is missing."), None, "The tests did not run: pytest is missing."),
    ],
)
def test_a_verdict_needs_tests(run, verdict, sentence):
    assert run.verdict is verdict
    assert run.sentence == sentence
    assert markdown_of_tests(run).startswith(f"**{sentence}**")


def test_the_text_has_names_and_the_end_of_the_output():
    run = TestsRun(
        0, 7, tuple(f"::t{one}" for one in range(7)), "x" * 9_000 + "\n```\nend", "With p."
    )
    text = markdown_of_tests(run)
    assert "**7 of 7 tests fail.** With p.\n\n- `t0`" in text
    assert "- and 2 more" in text
    assert text.endswith("\n```\nend\n````")
    assert len(text) < 7_000


async def test_the_tests_of_a_folder_are_run(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import unittest\n\n\nclass It(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertEqual(1, 2)\n"
    )
    run = await run_project_tests(tmp_path / "test_it.py")
    assert (run.verdict, run.failed, run.problem) == (Verdict.FAILED, 1, "")
    assert "1 != 2" in run.output
    assert run.used


async def test_a_folder_without_tests(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    run = await run_project_tests(tmp_path / "a.py")
    assert run.verdict is None


def test_the_project_is_the_nearest_folder_with_a_mark_but_not_the_home_folder(
    tmp_path, monkeypatch
):
    file = tmp_path / "home" / "shop" / "src" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("")
    (tmp_path / "home" / ".git").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert project_of(file) == file.parent
    (tmp_path / "home" / "shop" / "pyproject.toml").write_text("")
    assert project_of(file) == tmp_path / "home" / "shop"
