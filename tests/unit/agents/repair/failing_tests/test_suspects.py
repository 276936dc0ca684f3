"""Which functions are suspected of a failing test, and in which order."""

import ast

from agents.repair.failing_tests.suspects import functions_of, suspects_of
from agents.repair.failing_tests.trials import TrialResult
from agents.workspace.workspace import Workspace

CODE = """LIMIT = 3

def first():
    return second()

def second():
    return LIMIT

class Shelf:
    size = 2

    def third(self):
        return self.size
"""
FILES = Workspace.of_texts({"a.py": CODE, "tests/test_a.py": "def test_x():\n    pass\n"})


def spectrum(failing, passing=(), text=""):
    runs = {"t::bad": failing} | {f"t::good{at}": lines for at, lines in enumerate(passing)}
    return TrialResult(
        {name: "failed" if name == "t::bad" else "passed" for name in runs},
        {"t::bad": text},
        {name: {"a.py": lines} for name, lines in runs.items()},
    )


def names(*given, **more):
    return [
        (one.name, round(one.score, 2))
        for one in suspects_of("t::bad", spectrum(*given, **more), FILES)
    ]


def test_what_passing_tests_run_is_less_suspicious():
    assert names([4, 7], [[7], [7], [7]]) == [("first", 1.0), ("second", 0.5), ("LIMIT", 0.25)]


def test_a_function_that_no_failing_test_runs_is_no_suspect():
    assert "Shelf.third" not in dict(names([4], [[13]]))


def test_among_equals_the_innermost_function_of_the_traceback_comes_first():
    trace = (
        "tests/test_a.py:2: in test_x\n    first()\na.py:4: in first\n    return second()\n"
        "a.py:7: in second\n    return LIMIT\nE   TypeError: no\n\na.py:7: TypeError"
    )
    found = suspects_of("t::bad", spectrum([4, 7], text=trace), FILES)
    assert [(one.name, one.in_trace) for one in found[:2]] == [("second", True), ("first", True)]


def test_values_that_suspects_read_follow_the_functions():
    assert names([13]) == [("Shelf.third", 1.0), ("size", 0.5)]


def test_tests_are_no_suspects():
    found = TrialResult({"t::bad": "failed"}, {}, {"t::bad": {"tests/test_a.py": [2], "a.py": [7]}})
    assert {one.path for one in suspects_of("t::bad", found, FILES)} == {"a.py"}


def test_functions_of_finds_methods_and_what_conditions_define_and_nothing_inside_of_functions():
    code = "if x:\n    def a(): pass\nclass B:\n    class C:\n        def d(self):\n            def e(): pass\n"
    assert sorted(name for name, _ in functions_of(ast.parse(code))) == ["B.C.d", "a"]
