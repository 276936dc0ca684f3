"""Runs test files without pytest: test cases of unittest, and functions `test*` without parameters.

Executed by the project's interpreter, Python 3.8 or newer, as `python unittest_runner.py REPORT FILE…` with
the project as working folder; it imports nothing of Pravāha. REPORT is a JUnit file, or `-` for none. The
last line counts the tests. Exit status: 0 if all passed, 1 if one failed, 5 if there was none.
"""

from __future__ import annotations  # the annotations are newer than Python 3.8

import importlib
import os
import sys
import traceback
import unittest
from types import FunctionType
from typing import Any
from xml.sax.saxutils import quoteattr

Row = Any
"""Class name, name, kind and text of a test's outcome."""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class _Collected(unittest.TestResult):
    """Outcomes as rows: class name, name, kind, text."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []

    def _row(self, test: unittest.TestCase, kind: str, text: str = "") -> None:
        module, _, name = test.id().rpartition(".")
        self.rows.append((module, name, kind, text))
        _say(kind + " " + test.id())
        if text:
            _say(text)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addSuccess(test)
        self._row(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._row(test, "failure", self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._row(test, "error", self.errors[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._row(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self._row(test, "skipped")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._row(test, "failure", "an expected failure passed")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            text = "".join(traceback.format_exception(*err))
            self._row(test, "failure", text)


class _Function(unittest.FunctionTestCase):
    """A plain function, under the name that pytest gives it."""

    def __init__(self, module: str, function: FunctionType) -> None:
        super().__init__(function)
        self._id = module + "." + function.__name__

    def id(self) -> str:
        return self._id


def _module_name(path: str) -> tuple[str, str]:
    """Dotted name of a file, with the folder that must be on the search path."""
    folder, name = os.path.split(os.path.abspath(path))
    parts = [os.path.splitext(name)[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, ".".join(parts)


def _reported_name(path: str) -> str:
    """The name that pytest's report gives a file: its path with dots."""
    return os.path.splitext(path)[0].replace("/", ".").replace(os.sep, ".")


def _tests_of(path: str, result: _Collected) -> tuple[str, str, unittest.TestSuite] | None:
    folder, name = _module_name(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    reported = _reported_name(path)
    try:
        if name in sys.modules and "." not in name:
            del sys.modules[name]  # the same name in another folder
        module = importlib.import_module(name)
    except unittest.SkipTest:
        return None
    except BaseException:
        text = traceback.format_exc()
        result.rows.append((reported, name.rpartition(".")[2], "error", text))
        _say("error " + path)
        _say(text)
        return None
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    functions = [
        value
        for key, value in sorted(vars(module).items())
        if key.startswith("test")
        and getattr(value, "__module__", None) == module.__name__
        and hasattr(value, "__code__")
        and not value.__code__.co_argcount
        and not value.__code__.co_kwonlyargcount
    ]
    suite.addTests(_Function(name, one) for one in functions)
    return name, reported, suite


def main(report: str, paths: list[str]) -> int:
    """Run the files; the exit status."""
    sys.path.insert(0, os.getcwd())
    result = _Collected()
    for path in paths:
        found = _tests_of(path, result)
        if found is None:
            continue
        name, reported, suite = found
        before = len(result.rows)
        suite.run(result)
        result.rows[before:] = [
            (reported + row[0][len(name) :] if row[0].startswith(name) else row[0], *row[1:])
            for row in result.rows[before:]
        ]
    kinds = [row[2] for row in result.rows]
    if report != "-":
        _write(report, result.rows)
    failed = kinds.count("failure") + kinds.count("error")
    _say(f"{kinds.count('passed')} passed, {failed} failed")
    return 1 if failed else 0 if kinds else 5


def _write(report: str, rows: list[Row]) -> None:
    lines = ["<testsuites><testsuite>"]
    for module, name, kind, text in rows:
        clean = "".join(one if one >= " " or one in "\n\t" else "?" for one in text)[-4000:]
        inner = "" if kind == "passed" else f"<{kind} message={quoteattr(clean)}/>"
        lines.append(
            f"<testcase classname={quoteattr(module)} name={quoteattr(name)}>{inner}</testcase>"
        )
    lines.append("</testsuite></testsuites>")
    with open(report, "w", encoding="utf-8", errors="replace") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    sys.exit(main(sys.argv[1], sys.argv[2:]))
