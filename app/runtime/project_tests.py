"""`ProjectTests`: runs a project's own tests in the sandbox, and says in words what they did."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from engine.conversations.tree import Verdict
from engine.text.fenced import fenced

BY_TESTS = "tests"
"""Who writes the result of the tests, shown in place of a model's name."""
_SHOWN_CHARS = 6_000
"""Of the output, its end: the failures and the summary are there."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class TestsRun:
    """One run of the tests.

    Attributes:
        passed: how many passed.
        failed: how many failed.
        names: of those that failed, as far as they have names.
        output: what they printed; may be empty.
        used: the command and where it ran, in words; may be empty.
        problem: why there is no result; empty if there is one.
    """

    __test__ = False  # pytest must not collect it

    passed: int = 0
    failed: int = 0
    names: tuple[str, ...] = ()
    output: str = ""
    used: str = ""
    problem: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """What they say; None if nothing was tested."""
        if self.problem or not (self.passed or self.failed):
            return None
        return Verdict.FAILED if self.failed else Verdict.PASSED

    @property
    def sentence(self) -> str:
        """What the tests say, in one sentence."""
        if self.problem:
            return f"The tests did not run: {self.problem}"
        if not self.passed and not self.failed:
            return "The project has no tests, so nothing was tested."
        count = self.passed + self.failed
        if not self.failed:
            return "The only test passes." if count == 1 else f"All {count} tests pass."
        return f"{self.failed} of {count} tests fail."


ProjectTests = Callable[[Path], Awaitable[TestsRun]]
"""Runs the tests of the project that a file belongs to. Cancelling it stops them."""


async def run_project_tests(file: Path) -> TestsRun:
    """Run the tests of a file's project in its own environment (`agents.project_tests`)."""
    # With the sandbox, which is not needed before an edit.
    from agents.project_tests.run import run_tests
    from agents.sandbox.scratch import scratch_folder

    root = await asyncio.to_thread(project_of, file)
    with scratch_folder("pravaha-tests-") as folder:
        results = await run_tests(root, output=folder / "output.txt")
        kept = results.output
        text = "" if kept is None else await asyncio.to_thread(_end_of, kept)
    return TestsRun(
        results.num_passed,
        results.num_failed,
        tuple(sorted(results.failed)) if results.counts is None else (),
        text,
        " ".join(one for one in (results.used, results.not_run) if one),
        results.problem,
    )


def project_of(file: Path) -> Path:
    """The folder whose tests judge a change of a file; never the home folder, which may be a repository."""
    from agents.repair.project_root import find_project

    root, folder = find_project(file).root, file.resolve().parent
    return folder if Path.home().resolve().is_relative_to(root) else root


def _end_of(file: Path) -> str:
    """The last characters of an output."""
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - 4 * _SHOWN_CHARS))
        return opened.read().decode("utf-8", "replace")[-_SHOWN_CHARS:]


def markdown_of_tests(run: TestsRun) -> str:
    """A run as the text of a message."""
    parts = [f"**{run.sentence}**" + (f" {run.used}" if run.used else "")]
    if run.names:
        more = len(run.names) - _NAMED
        rows = [f"- `{name.removeprefix('::')}`" for name in run.names[:_NAMED]]
        parts.append("\n".join([*rows, *([f"- and {more} more"] if more > 0 else [])]))
    if run.output.strip():
        parts.append(fenced(run.output.strip("\n")[-_SHOWN_CHARS:], "text"))
    return "\n\n".join(parts)
