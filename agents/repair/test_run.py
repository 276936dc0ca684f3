"""Running a project's tests: which pass and which fail.

Tests are the project's own code. They run only after an approval, in a process group of their own, with a
scrubbed environment, a time limit, and a home folder that is removed.
"""

import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.tools.process import run_process

TESTS_S = 600.0
_KEPT = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class TestResults:
    """The outcome of one run.

    Attributes:
        passed: names of the tests that passed.
        failed: names of those that failed or could not be collected.
        problem: why there is no outcome, or empty.
    """

    __test__ = False  # pytest must not collect it

    passed: frozenset[str] = field(default_factory=frozenset)
    failed: frozenset[str] = field(default_factory=frozenset)
    problem: str = ""

    @property
    def any(self) -> bool:
        """Whether a test ran."""
        return bool(self.passed or self.failed)


async def run_tests(
    root: Path, paths: Sequence[str] = (), *, timeout_s: float = TESTS_S
) -> TestResults:
    """Run pytest in a folder, on some test files or on all.

    Args:
        root: the folder.
        paths: test files relative to it; none runs what pytest finds.
        timeout_s: seconds after which the tests are killed.
    """
    with tempfile.TemporaryDirectory(prefix="pravaha-home-") as home:
        report = Path(home) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-o", "addopts=",
            f"--junit-xml={report}", *paths,
        ]  # fmt: skip
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"}
        done = await run_process(command, folder=root, environment=environment, timeout_s=timeout_s)
        if done.timed_out:
            return TestResults(problem=f"The tests took more than {timeout_s:g} s.")
        if not report.is_file():
            words = (done.output + done.errors).decode("utf-8", "replace").strip().splitlines()
            return TestResults(
                problem=f"pytest did not run: {words[-1][:200] if words else 'no output'}"
            )
        return _read(report.read_bytes())


def _read(data: bytes) -> TestResults:
    """The outcomes of a JUnit report, which a test of the project may have written to."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return TestResults(problem="The report of the tests is not usable.")
    try:
        root = ET.fromstring(data)  # noqa: S314 - entities were refused above
    except ET.ParseError:
        return TestResults(problem="The report of the tests is not usable.")
    passed: set[str] = set()
    failed: set[str] = set()
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed.add(name)
        elif "skipped" not in kinds:
            passed.add(name)
    return TestResults(frozenset(passed - failed), frozenset(failed))
