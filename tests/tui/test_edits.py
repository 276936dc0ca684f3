"""Edits from the chat: offered below an answer, shown, applied, taken back, tested, and corrected."""

import asyncio

import pytest

from app.runtime.project_tests import TestsRun
from engine.conversations.tree import Verdict
from tests.tui.harness import open_screen

HOLDS = "def position(holds, member):\n    # from 1\n    return holds.index(member)\n"
FIXED = HOLDS.replace("(member)\n", "(member) + 1\n")
ANSWER = (
    "It counts from 0.\n\n"
    "```python\ndef position(holds, member):\n    return holds.index(member) + 1\n```\n"
)


class Tests:
    """Tests with scripted results."""

    __test__ = False

    def __init__(self, *runs):
        self.runs = list(runs)
        self.files = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def __call__(self, file):
        self.files.append(file)
        await self.goes_on.wait()
        return self.runs.pop(0)


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    (folder / "library").mkdir(parents=True)
    (folder / "library" / "holds.py").write_text(HOLDS)
    monkeypatch.chdir(folder)
    return folder


def holds(project):
    return (project / "library" / "holds.py").read_text()


def opened(tmp_path, project, *answers, tests=None, **options):
    return open_screen(
        tmp_path, *answers, edit_root=project, project_tests=tests or Tests(), **options
    )


async def ask(ui, text="Fix the off-by-one in @library/holds.py"):
    await ui.ask(text)
    await ui.until(lambda: ui.session.path(), "the message")
    await ui.answered()


async def press_d(ui):
    if ui.prompt.has_focus:
        await ui.press("shift+tab")
    await ui.press("d")


async def choose(ui, key):
    """Open the dialog of the edit, and press a key when it takes keys."""
    await press_d(ui)
    await ui.until(lambda: ui.app.dialog is not None, "the dialog")
    await ui.shown("@@")
    ui.app.dialog._quiet._clock = lambda: 1e9
    await ui.press(key)
    await ui.until(lambda: ui.app.dialog is None, "the end of the dialog")


async def test_an_edit_is_offered_shown_and_applied(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("▸ changes library/holds.py +1 -1 position", "d or /apply shows it")
        await press_d(ui)
        await ui.shown(
            "The answer changes library/holds.py +1 -1",
            "-    return holds.index(member)",
            "+    return holds.index(member) + 1",
            "y  apply",
            "t  apply, then run the project's tests",
        )
        assert holds(project) == HOLDS
        await ui.press("escape")
        assert holds(project) == HOLDS
        await choose(ui, "y")
        await ui.until(lambda: holds(project) == FIXED, "the file")
        await ui.shown("✓ applied to library/holds.py +1 -1", "d tests it or takes it back")


async def test_an_edit_is_taken_back(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        await choose(ui, "y")
        await ui.shown("applied to library/holds.py")
        await choose(ui, "u")
        await ui.until(lambda: holds(project) == HOLDS, "the old file")
        await ui.shown("▸ changes library/holds.py")


async def test_an_edit_that_is_not_on_the_disk_any_more_is_offered_again(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        await choose(ui, "y")
        await ui.shown("applied to library/holds.py")
        (project / "library" / "holds.py").write_text(HOLDS)  # as `git checkout` does
        await press_d(ui)
        await ui.shown("The answer changes library/holds.py", "y  apply")


async def test_the_command_opens_it_too(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        await ui.ask("/apply")
        await ui.shown("The answer changes library/holds.py")


async def test_keys_right_after_the_dialog_opened_are_ignored(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        await press_d(ui)
        await ui.until(lambda: ui.app.dialog is not None, "the dialog")
        ui.app.dialog._quiet._clock = lambda: ui.app.dialog._quiet._since
        await ui.press("y", "enter", "space")
        assert ui.app.dialog is not None
        assert holds(project) == HOLDS


async def test_tests_that_fail_are_given_back_to_the_model(tmp_path, project):
    tests = Tests(
        TestsRun(1, 1, ("test_holds.py::test_first",), "assert 1 == 2", "With .venv."), TestsRun(2)
    )
    better = ANSWER.replace("+ 1", "+ 2")
    async with opened(tmp_path, project, ANSWER, better, tests=tests) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        tests.goes_on.clear()
        await choose(ui, "t")
        await ui.shown("I applied the change to library/holds.py (+1 -1). Run the tests.")
        await ui.shown("the tests are running; d stops them")
        assert tests.files == [project / "library" / "holds.py"]
        tests.goes_on.set()
        await ui.shown("1 of 2 tests fail.", "With .venv.", "test_holds.py::test_first")
        await ui.shown("assert 1 == 2", "✗ failed", "d has the model correct it")
        assert ui.session.path()[-1].finish == Verdict.FAILED
        await press_d(ui)
        await ui.until(lambda: len(ui.session.path()) > 4, "the message")
        await ui.answered()
        sent = ui.session.path()[4].text
        assert sent.startswith(
            "Correct @library/holds.py so that these tests pass. Write each changed function as a whole."
        )
        assert "holds.index(member) + 1" in sent  # as it is now
        prompt = ui.client.detokenize(ui.client.requests[-1].prompt_ids)
        assert "assert 1 == 2" in prompt
        await ui.shown("changes library/holds.py +1 -1")
        await choose(ui, "t")
        await ui.shown("All 2 tests pass.", "✓ passed")
        assert "+ 2" in holds(project)


async def test_running_tests_are_stopped(tmp_path, project):
    tests = Tests(TestsRun(1))
    tests.goes_on.clear()
    async with opened(tmp_path, project, ANSWER, tests=tests) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        await choose(ui, "t")
        await ui.shown("the tests are running; d stops them")
        await press_d(ui)
        await ui.shown("The tests did not run: they were stopped.")
        assert ui.session.path()[-1].finish == "stop"


async def test_a_file_that_changed_since_it_was_attached_is_not_offered(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ui.ask("Fix @library/holds.py")
        await ui.until(lambda: ui.session.path(), "the message")
        (project / "library" / "holds.py").write_text("x = 1\n" + HOLDS)
        await ui.answered()
        await ui.shown("library/holds.py has changed since it was attached: name it again")
        await press_d(ui)
        await ui.until(lambda: any("has changed" in one for one in ui.toasts), "the reason")


async def test_a_file_that_changes_while_the_diff_is_shown_is_not_written(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
        await press_d(ui)
        await ui.shown("@@")
        (project / "library" / "holds.py").write_text("x = 1\n")
        ui.app.dialog._quiet._clock = lambda: 1e9
        await ui.press("y")
        await ui.until(lambda: any("nothing was written" in one for one in ui.toasts), "the reason")
        assert holds(project) == "x = 1\n"


async def test_a_file_that_is_only_named_is_found_and_marked_as_unread(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui, "There is an off-by-one in holds.py.")
        await ui.shown("changes library/holds.py +1 -1")
        await press_d(ui)
        await ui.shown("the model has not read this file in this conversation")


async def test_code_without_a_place_says_why(tmp_path, project):
    broken = (
        "```python\ndef position(holds, member):\n    # ... rest of the code\n    return 1\n```\n"
    )
    async with opened(tmp_path, project, broken) as ui:
        await ask(ui)
        await ui.shown("The answer leaves out a part of position")


async def test_a_new_file_is_offered_as_one(tmp_path, project):
    answer = "**library/loans.py**\n```python\ndef lend():\n    return 1\n```\n"
    async with opened(tmp_path, project, answer) as ui:
        await ask(ui, "Write a module for loans.")
        await ui.shown("changes library/loans.py (new) +2 -0")
        await choose(ui, "y")
        await ui.until((project / "library" / "loans.py").exists, "the file")


async def test_no_edit_is_offered_without_code_and_in_a_replay(tmp_path, project):
    async with opened(tmp_path, project, "No code.") as ui:
        await ask(ui)
        await press_d(ui)
        await ui.until(lambda: any("No answer has code" in one for one in ui.toasts), "the reason")
    async with open_screen(tmp_path / "project", ANSWER) as ui:
        await ask(ui)
        await press_d(ui)
        await ui.until(lambda: any("replay changes no files" in one for one in ui.toasts), "it")
        assert "changes library" not in ui.text


async def test_a_restart_offers_what_is_not_applied(tmp_path, project):
    async with opened(tmp_path, project, ANSWER) as ui:
        await ask(ui)
        await ui.shown("changes library/holds.py")
    async with opened(tmp_path, project) as ui:
        await ui.shown("changes library/holds.py +1 -1")
