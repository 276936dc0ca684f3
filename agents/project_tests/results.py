"""`TestResults`: the outcome of a run of tests, read from a report, or from output and exit status."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.project_tests.plan import TestCommand

MAX_REPORT_BYTES = 64 << 20
_COUNT = re.compile(r"\b(\d{1,6}) (passed|failed|errors?)\b")
_MODULE = re.compile(r"(?:ModuleNotFoundError: )?No module named '?([\w.]+)'?")
_OPTIONS = re.compile(
    r"unrecognized arguments|[Mm]issing required plugins|Error importing plugin|"
    r"while parsing the following warning configuration|Unknown config option|argument .*: expected|"
    r"ambiguous option|no such option"
)
_NOT_RUN = re.compile(
    r"command not found|: not found|No rule to make target|Temporary failure in name resolution|"
    r"Could not resolve host|ENOTFOUND|EAI_AGAIN|Network is unreachable|getaddrinfo|"
    r"attempting to make an HTTP request, but --offline|failed to download|can't be downloaded|"
    r"module lookup disabled|Cannot find module|No module named|Read-only file system|"
    r"[Ff]ailed to fetch|Failed to establish a new connection|no matching package named"
)
_FAILED = re.compile(
    r"\b[1-9]\d* (failed|failures?|failing)\b|FAILED\b|^--- FAIL|^FAIL\b|AssertionError|^not ok\b|✗|✖",
    re.MULTILINE,
)
_UNUSABLE_STATUS = frozenset([126, 127])


@dataclass(frozen=True, slots=True)
class TestResults:
    """The outcome of one run.

    Attributes:
        passed: names of the tests that passed; the command alone if it does not name tests.
        failed: names of those that failed or could not be collected.
        problem: why there is no outcome, with what to do about it; or empty.
        not_run: why a part of the tests did not run although the others did; or empty.
        command: what ran; None if nothing did.
        output: file with the whole output, or None.
        counts: `(passed, failed)` if the output counts tests that it does not name.
    """

    __test__ = False  # pytest must not collect it

    passed: frozenset[str] = field(default_factory=frozenset)
    failed: frozenset[str] = field(default_factory=frozenset)
    problem: str = ""
    not_run: str = ""
    command: TestCommand | None = None
    output: Path | None = None
    counts: tuple[int, int] | None = None

    @property
    def any(self) -> bool:
        """Whether a test ran."""
        return bool(self.passed or self.failed)

    @property
    def used(self) -> str:
        """What the tests ran with and why, in one sentence; empty if nothing ran."""
        if self.command is None:
            return ""
        return f"The tests ran with {self.command.name}, because {self.command.why}."

    @property
    def num_passed(self) -> int:
        """How many passed."""
        return len(self.passed) if self.counts is None else self.counts[0]

    @property
    def num_failed(self) -> int:
        """How many failed."""
        return len(self.failed) if self.counts is None else self.counts[1]


def wants_fewer_options(command: TestCommand, status: int, text: str) -> bool:
    """Whether pytest refused the project's options, whose plugins are not installed."""
    return command.kind == "pytest" and status in (1, 3, 4) and bool(_OPTIONS.search(text))


def results_of(
    command: TestCommand, status: int, text: str, report: bytes | None, own: frozenset[str]
) -> TestResults:
    """The outcome of a command that ended by itself.

    Args:
        command: what ran.
        status: its exit status.
        text: its output.
        report: the JUnit file, if it wrote one.
        own: names of modules and packages of the project: only others can be missing packages.
    """
    if status in _UNUSABLE_STATUS:
        return _problem(command, f"{command.name} cannot be run here: {last_line(text)}")
    if command.kind == "command":
        return _of_status(command, status, text)
    if report is not None:
        root = _parsed(report)
        found = replace(_outcomes(root), command=command)
        if found.any or found.problem:
            return _checked(found, _failure_texts(root), own)
    if status == 5 or (status == 0 and report is not None):
        return _problem(command, f"{command.name} found no test.")
    counts = _counts(text)
    if counts is None or not any(counts):
        missing = _first_missing([text], own)
        reason = _missing_text(command, missing) if missing else last_line(text)
        return _problem(command, f"The tests did not run with {command.name}: {reason}")
    passed, failed = counts
    found = TestResults(
        frozenset({command.line} if passed and not failed and status == 0 else ()),
        frozenset({command.line} if failed or status else ()),
        command=command,
        counts=counts,
    )
    texts = [text] * min(failed, len(_modules(text, own)))
    return _checked(found, texts, own)


def _checked(found: TestResults, texts: list[str], own: frozenset[str]) -> TestResults:
    """No outcome if all that failed did so because a package is not installed."""
    missing = [one for one in texts if _modules(one, own)]
    command = found.command
    if not missing or len(missing) < found.num_failed or command is None:
        return found
    return _problem(command, _missing_text(command, _first_missing(missing, own)))


def _missing_text(command: TestCommand, module: str) -> str:
    return f"The package {module} is not installed in {command.name}: install what the tests need there."


def _first_missing(texts: list[str], own: frozenset[str]) -> str:
    return next((one for text in texts for one in _modules(text, own)), "")


def _modules(text: str, own: frozenset[str]) -> list[str]:
    """Packages that are not there and are none of the project's."""
    found = [match.split(".")[0] for match in _MODULE.findall(text)]
    return [one for one in found if one and one not in own]


def _of_status(command: TestCommand, status: int, text: str) -> TestResults:
    name = frozenset({command.line})
    counts = _counts(text)
    if status == 0:
        return TestResults(passed=name, command=command, counts=counts)
    failed = _FAILED.search(text) is not None
    if not failed or (_NOT_RUN.search(text) and not (counts and counts[1])):
        return _problem(command, f"{command.name} ended with {status}: {last_line(text)}")
    return TestResults(failed=name, command=command, counts=counts)


def _problem(command: TestCommand, text: str) -> TestResults:
    return TestResults(problem=text[:400], command=command)


def _counts(text: str) -> tuple[int, int] | None:
    """Passed and failed by the last line that counts tests."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        found = {word.rstrip("s"): int(number) for number, word in _COUNT.findall(line)}
        counts = found or counts
    if not counts:
        return None
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


def read_report(data: bytes) -> TestResults:
    """The outcomes of a JUnit report, which a test of the project may have written to."""
    return _outcomes(_parsed(data))


def _outcomes(root: ET.Element | None) -> TestResults:
    if root is None:
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


def _parsed(data: bytes) -> ET.Element | None:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return None
    try:
        return ET.fromstring(data)  # noqa: S314 - entities were refused above
    except ET.ParseError:
        return None


def _failure_texts(root: ET.Element | None) -> list[str]:
    """The text of each failure."""
    found = [] if root is None else [one for one in root.iter() if one.tag in ("failure", "error")]
    return [f"{one.get('message', '')}\n{one.text or ''}" for one in found]


def fields_of(results: TestResults) -> Mapping[str, Any]:
    """The outcome as JSON members, as the verdicts of agents take it."""
    command = results.command
    return {
        "ok": bool(results.passed) and not results.failed,
        "passed": results.num_passed,
        "failed": results.num_failed,
        "problem": results.problem,
        "not_run": results.not_run,
        "used": results.used,
        "command": "" if command is None else command.line,
        "output": None if results.output is None else str(results.output),
    }
