"""The outcome of a run: from a report, or from output and exit status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.project_tests.plan import TestCommand
from agents.project_tests.results import fields_of, read_report, results_of

PYTEST = TestCommand(
    "pytest", "the project's environment .venv", "it is there", ("python", "-m", "pytest")
)
MAKE = TestCommand("command", "`make test`", "there is a Makefile", ("make", "test"))


def report(*cases: str) -> bytes:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()


GOOD = '<testcase classname="t" name="a"/>'
BAD = '<testcase classname="t" name="b"><failure message="assert 0"/></testcase>'
SKIPPED = '<testcase classname="t" name="c"><skipped/></testcase>'
MISSING = '<testcase classname="" name="t"><error message="No module named &apos;flask&apos;"/></testcase>'


def test_a_report_names_the_tests():
    found = results_of(PYTEST, 1, "", report(GOOD, BAD, SKIPPED), frozenset())
    assert (found.passed, found.failed, found.problem) == ({"t::a"}, {"t::b"}, "")
    assert fields_of(found)["used"] == (
        "The tests ran with the project's environment .venv, because it is there."
    )


def test_a_missing_package_counts_only_if_nothing_else_failed():
    alone = results_of(PYTEST, 2, "", report(GOOD, MISSING), frozenset())
    assert "The package flask is not installed" in alone.problem
    own = results_of(PYTEST, 2, "", report(GOOD, MISSING), frozenset({"flask"}))
    assert own.failed == {"::t"}
    beside = results_of(PYTEST, 2, "", report(BAD, MISSING), frozenset())
    assert beside.failed == {"t::b", "::t"}


@pytest.mark.parametrize(
    ("status", "text", "outcome"),
    [
        (0, "3 passed in 0.1s", (3, 0, "")),
        (1, "1 failed, 2 passed, 1 error in 3s", (2, 2, "")),
        (1, "2 failed in 3s\nsuite b: 1 failed, 4 passed", (4, 1, "")),
        (5, "no tests ran", (0, 0, "found no test")),
        (3, "INTERNALERROR> x", (0, 0, "did not run")),
        (127, "No such file or directory", (0, 0, "cannot be run here")),
        (1, "/x/python: No module named pytest", (0, 0, "The package pytest is not installed")),
        (0, "", (0, 0, "did not run")),
    ],
)
def test_the_output_of_pytest_is_counted(status, text, outcome):
    found = results_of(PYTEST, status, text, None, frozenset())
    assert (found.num_passed, found.num_failed) == outcome[:2]
    assert outcome[2] in found.problem
    assert bool(found.problem) == bool(outcome[2])


@pytest.mark.parametrize(
    ("status", "text", "state"),
    [
        (0, "ok", "passed"),
        (2, "FAIL: test_a\nFAILED (failures=1)", "failed"),
        (101, "test result: FAILED. 1 passed; 1 failed", "failed"),
        (1, "--- FAIL: TestX (0.00s)\nFAIL", "failed"),
        (1, "Tests: 2 failed, 3 passed", "failed"),
        (2, "make: *** No rule to make target 'test'.", "problem"),
        (101, "error: no matching package named `x` found\n--offline was specified", "problem"),
        (1, "npm error getaddrinfo EAI_AGAIN registry", "problem"),
        (1, "sh: 1: jest: not found", "problem"),
        (2, "something else", "problem"),
    ],
)
def test_a_status_alone_is_no_failed_test(status, text, state):
    found = results_of(MAKE, status, text, None, frozenset())
    assert state == ("problem" if found.problem else "failed" if found.failed else "passed")


@given(st.binary(max_size=300), st.text(max_size=200), st.integers(-20, 200))
def test_any_report_and_output_have_one_outcome(data, text, status):
    read_report(data)
    found = results_of(PYTEST, status, text, data, frozenset())
    assert bool(found.problem) != found.any


@pytest.mark.parametrize("data", [b"<!DOCTYPE x>", b"<a>&x;<!ENTITY x></a>", b"<open>", b""])
def test_a_report_that_tests_wrote_to_is_not_trusted(data):
    assert read_report(data).problem == "The report of the tests is not usable."
