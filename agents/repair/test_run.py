"""Running a project's tests: which pass and which fail.

Tests are the project's own code. They run only after an approval, and in the sandbox: without network, with
write access to the given folder and a temporary one alone.
"""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.sandbox.choice import open_sandbox
from agents.sandbox.policy import Limits, SandboxMode, SandboxPolicy
from agents.sandbox.sandbox import Command, SandboxFailed, SandboxUnavailable
from agents.sandbox.scratch import scratch_folder

TESTS_S = 600.0
_MEMORY_BYTES = 4 << 30
_MAX_REPORT_BYTES = 64 << 20


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
    root: Path,
    paths: Sequence[str] = (),
    *,
    timeout_s: float = TESTS_S,
    sandbox: SandboxMode = "auto",
) -> TestResults:
    """Run pytest in a folder, on some test files or on all.

    Args:
        root: the folder; tests may change files in it.
        paths: test files relative to it; none runs what pytest finds.
        timeout_s: seconds after which the tests are killed.
        sandbox: which sandbox they run in; without one they do not run, unless it is `off`.
    """
    with scratch_folder("pravaha-report-") as folder:
        report = folder / "report.xml"
        words = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-o", "addopts=",
            f"--junit-xml={report}", *paths,
        ]  # fmt: skip
        limits = Limits(memory_bytes=_MEMORY_BYTES, cpu_s=int(timeout_s) + 1, wall_s=timeout_s)
        policy = SandboxPolicy(writable=(root, folder), limits=limits)
        try:
            runner = await open_sandbox(sandbox)
            done = await runner.run(Command(words, root), policy)
        except (SandboxUnavailable, SandboxFailed) as error:
            return TestResults(problem=str(error))
        if done.ended_by == "the time limit":
            return TestResults(problem=f"The tests took more than {timeout_s:g} s.")
        if done.ended_by:
            return TestResults(problem=f"The tests were ended by {done.ended_by}.")
        data = _report(report)
        if data is None:
            lines = done.output.text.strip().splitlines()
            return TestResults(
                problem=f"pytest did not run: {lines[-1][:200] if lines else 'no output'}"
            )
        return _read(data)


def _report(path: Path) -> bytes | None:
    """The report's bytes, or None if there is none. The tests may have put anything in its place."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_REPORT_BYTES:
        return None
    return path.read_bytes()


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
