"""`run_tests` without the installed plugins, which take most of a short run's time."""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agents.project_tests.plan import TestCommand
from agents.project_tests.results import TestResults, read_report
from agents.tools.process import run_process

COMMAND = TestCommand(
    "pytest",
    "this interpreter",
    "it runs the tests",
    (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="),
)


async def quick_tests(root: Path, paths: Sequence[str] = (), **options: object) -> TestResults:
    """Real pytest on real files; the options of `run_tests` change nothing."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=no",
            "-o",
            "addopts=",
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "TMPDIR": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        done = await run_process(
            [*command, f"--junit-xml={report}", *paths],
            folder=root,
            environment=environment,
            timeout_s=60.0,
        )
        if not report.is_file():
            return TestResults(problem=done.output.decode() + done.errors.decode())
        return replace(read_report(report.read_bytes()), command=COMMAND)
