"""Trials: outcomes of changed files, which lines ran, and what a bad change cannot do."""

import asyncio

from agents.repair.failing_tests.test_python import TestPython
from agents.repair.failing_tests.trials import Trial, run_trials

PYTHON = TestPython(plugins=False)


def run(root, *trials, test_s=5.0, trial_s=20.0, total_s=60.0):
    return asyncio.run(
        run_trials(root, trials, PYTHON, test_s=test_s, trial_s=trial_s, total_s=total_s)
    )


def test_each_trial_has_its_own_files_and_the_folder_is_as_before(shop, files):
    before = files(shop)
    right = (shop / "shop.py").read_text().replace("> BULK", ">= BULK")
    found = run(shop, Trial(), Trial({"shop.py": right}), Trial({"new.py": "x = 1\n"}), Trial())
    assert [sorted(one.failed) for one in found] == [
        ["test_shop.py::test_ten"], [], ["test_shop.py::test_ten"], ["test_shop.py::test_ten"],
    ]  # fmt: skip
    assert len(found[1].passed) == 4
    assert "assert 1000 == 900" in found[0].texts["test_shop.py::test_ten"]
    assert files(shop) == before


def test_only_the_named_tests_run(shop):
    (found,) = run(shop, Trial(tests=("test_shop.py::test_few",)))
    assert dict(found.outcomes) == {"test_shop.py::test_few": "passed"}


def test_the_lines_of_each_test_are_recorded(shop):
    (found,) = run(shop, Trial(lines=True))
    assert {7} <= lines_of(found, "test_price") <= {6, 7}  # some versions count the line of `def`
    assert {7, 12, 13, 15} <= lines_of(found, "test_ten") <= {6, 7, 10, 12, 13, 15}
    assert 14 in lines_of(found, "test_many")


def lines_of(found, name):
    return set(found.lines[f"test_shop.py::{name}"]["shop.py"])


def test_a_test_that_does_not_end_fails_and_the_others_go_on(shop):
    endless = "def price(pieces, cents):\n    while True:\n        try:\n            pieces += 1\n        except Exception:\n            pass\n\ndef due(pieces, cents):\n    return 900\n"
    (found,) = run(shop, Trial({"shop.py": endless}), test_s=0.2)
    assert found.outcomes["test_shop.py::test_price"] == "failed"
    assert "does not end in time" in found.texts["test_shop.py::test_price"]
    assert found.outcomes["test_shop.py::test_ten"] == "passed"


def test_a_trial_that_blocks_signals_is_killed_and_the_next_one_runs(shop):
    stuck = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\nwhile True:\n    pass\n"
    first, second = run(shop, Trial({"shop.py": stuck}), Trial(), trial_s=1.0)
    assert first.problem == "the tests do not end in time"
    assert second.failed


def test_a_process_that_ends_has_a_problem(shop):
    (found,) = run(shop, Trial({"shop.py": "import os\nos._exit(0)\n"}))
    assert (found.problem, dict(found.outcomes)) == ("the tests ended in the middle", {})


def test_a_file_that_cannot_be_imported_is_a_failure(shop):
    (found,) = run(shop, Trial({"shop.py": "def ("}))
    assert found.failed == {"test_shop.py"}


def test_without_time_a_trial_has_a_problem(shop):
    slow = "import time\ntime.sleep(60)\n"
    first, second = run(shop, Trial({"shop.py": slow}), Trial(), trial_s=60.0, total_s=1.5)
    assert first.problem
    assert second.problem
