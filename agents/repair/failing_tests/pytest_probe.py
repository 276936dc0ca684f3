"""Runs pytest for many small changes of a project, each in a fork of one process that has imported pytest.

Executed by the project's interpreter, Python 3.8 or newer, as `python pytest_probe.py ORDER RESULT` with the
project as working folder; it imports nothing of Pravāha. ORDER is JSON:

    {"trials": [{"files": {path: text or null}, "tests": [node ids], "lines": bool}],
     "options": [pytest options], "root": of the files whose lines are recorded,
     "seconds": after which a trial is ended, "test_seconds": after which a test fails,
     "plugins": whether pytest loads those that are installed beside it, which takes most of a short run}

A trial writes its files, runs the tests in a fork, and puts the files back. RESULT gets one JSON line a
trial:

    {"outcomes": {node id: "passed" | "failed" | "skipped"}, "texts": {node id: what a failure said},
     "lines": {node id: {path: [numbers]}}, "problem": why there are no outcomes, or ""}

An unfinished RESULT has the trials that were finished.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
from typing import Any

MAX_TEXT = 8000


class TooSlow(BaseException):
    """A test has used up its seconds. No `except Exception` of the project catches it."""


def _too_slow(number: int, frame: Any) -> None:
    raise TooSlow("the test does not end in time")


class _Recorder:
    """A plugin that keeps outcomes, failure texts and the lines of each test."""

    def __init__(self, root: str, lines: bool, seconds: float) -> None:
        self._seconds = seconds
        self.outcomes: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.lines: dict[str, dict[str, list[int]]] = {}
        self._tracer = _Lines(root) if lines else None

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        if self._tracer is not None:
            self._tracer.begin()

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._tracer is not None:
            self.lines[nodeid] = self._tracer.end()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            self.texts.setdefault(report.nodeid, report.longreprtext[-MAX_TEXT:])
        elif report.skipped:
            self.outcomes.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, "passed")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            self.texts[report.nodeid] = report.longreprtext[-MAX_TEXT:]


class _Lines:
    """Which lines of the project's files ran since `begin`. Only frames of these files are traced."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root) + os.sep
        self._known: dict[str, str | None] = {}
        self._found: dict[str, set[int]] = {}

    def begin(self) -> None:
        """Record from now on."""
        self._found = {}
        sys.settrace(self._call)

    def end(self) -> dict[str, list[int]]:
        """The lines by path."""
        sys.settrace(None)
        return {path: sorted(numbers) for path, numbers in self._found.items()}

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        path = self._path(frame.f_code.co_filename)
        if path is None:
            return None

        def local(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                self._add(path, frame.f_lineno)
            return local

        self._add(path, frame.f_lineno)
        return local

    def _path(self, name: str) -> str | None:
        """The path relative to the root, or None for a file outside of it."""
        if name not in self._known:
            real = os.path.realpath(name)
            inside = real.startswith(self._root) and real.endswith(".py")
            self._known[name] = real[len(self._root) :] if inside else None
        return self._known[name]

    def _add(self, path: str, line: int) -> None:
        self._found.setdefault(path, set()).add(line)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, data: bytes | None) -> None:
    if data is None:
        if os.path.exists(path):
            os.unlink(path)
        return
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        os.makedirs(folder)
    with open(path, "wb") as file:
        file.write(data)


def _child(trial: dict[str, Any], order: dict[str, Any], writing: int) -> None:
    """In the fork: run pytest and write the outcomes into a pipe."""
    import pytest

    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silent, number)
    signal.signal(signal.SIGALRM, _too_slow)
    recorder = _Recorder(order["root"], trial.get("lines", False), order["test_seconds"])
    problem = ""
    try:
        status = int(pytest.main(list(order["options"]) + list(trial["tests"]), [recorder]))
        if status in (3, 4):
            problem = "pytest could not run these tests"
    except BaseException as error:
        problem = "pytest ended with " + type(error).__name__
    text = json.dumps(
        {
            "outcomes": recorder.outcomes,
            "texts": recorder.texts,
            "lines": recorder.lines,
            "problem": problem,
        }
    ).encode()
    while text:
        text = text[os.write(writing, text) :]
    os._exit(0)


def _run(trial: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _child(trial, order, writing)
        finally:
            os._exit(1)
    os.close(writing)
    end = time.time() + order["seconds"]
    parts = []
    problem = "the tests ended in the middle"
    while True:
        ready = select.select([reading], [], [], max(0.0, end - time.time()))[0]
        if not ready:
            problem = "the tests do not end in time"
            break
        part = os.read(reading, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(reading)
    for kill in (os.killpg, os.kill):  # what it started, and itself if it leads no group yet
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        found: dict[str, Any] = json.loads(b"".join(parts).decode())
    except ValueError:
        found = {"outcomes": {}, "texts": {}, "lines": {}, "problem": problem}
    return found


def _import_pytest() -> None:
    """Import pytest with the plugins that it always has, so that each fork has them."""
    import pytest  # noqa: F401

    with contextlib.suppress(Exception):  # another version of pytest: each fork imports them itself
        from _pytest.config import get_config

        get_config()
    gc.freeze()  # a collection in a fork would copy all of it


def main(order_path: str, result_path: str) -> None:
    """Run the trials of an order."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.getcwd())  # as `python -m pytest` does
    with open(order_path) as file:
        order = json.load(file)
    if not order["plugins"]:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    _import_pytest()
    with open(result_path, "w") as result:
        for trial in order["trials"]:
            before = {path: _read(path) for path in trial["files"]}
            try:
                for path, text in trial["files"].items():
                    _write(path, None if text is None else text.encode("utf-8"))
                outcome = _run(trial, order)
            finally:
                for path, data in before.items():
                    _write(path, data)
            result.write(json.dumps(outcome) + "\n")
            result.flush()


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    main(sys.argv[1], sys.argv[2])
