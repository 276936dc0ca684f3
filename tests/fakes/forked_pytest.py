"""Runs pytest on many folders, each in a fork of one process that has imported pytest already.

    python forked_pytest.py FOLDER…     prints {folder: {test: whether it passed}} as JSON

A run takes a tenth of what a new interpreter takes, and the folders may have modules of the same name.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


class _Outcomes:
    def __init__(self) -> None:
        self.passed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed[report.nodeid] = self.passed.get(report.nodeid, True) and not report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.passed[report.nodeid] = False


def outcomes(folders: Sequence[Path]) -> dict[Path, dict[str, bool]]:
    """Which tests of each folder passed, by node id."""
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, __file__, *map(str, folders)],
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {Path(name): one for name, one in json.loads(done.stdout).items()}


def _forked(folder: str) -> dict[str, bool]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.chdir(folder)
        found = _Outcomes()
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            names = [one for one in ("tests", "oracle") if Path(one).is_dir()]
            # Both folders may have a test module of the same name.
            given = ["-q", "--tb=no", "-p", "no:cacheprovider", "--import-mode=importlib", *names]
            pytest.main(given, plugins=[found])
        with os.fdopen(writing, "w") as pipe:
            json.dump(found.passed, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


if __name__ == "__main__":
    json.dump({name: _forked(name) for name in sys.argv[1:]}, sys.stdout)
