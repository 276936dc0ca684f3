"""`ProjectTests`: runs a project's own tests in the sandbox, and says in words what they did."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from engine.conversations.tree import Verdict

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
        failed: names of those that failed.
        output: what they printed; may be empty.
        used: the command and where it ran, in words; may be empty.
        problem: why there is no result; empty if there is one.
    """

    __test__ = False  # pytest must not collect it

    passed: int = 0
    failed: tuple[str, ...] = ()
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
        count = self.passed + len(self.failed)
        if not self.failed:
            return "The only test passes." if count == 1 else f"All {count} tests pass."
        return f"{len(self.failed)} of {count} tests fail."


ProjectTests = Callable[[Path], Awaitable[TestsRun]]
"""Runs the tests of the project in a folder. Cancelling it stops them."""


async def run_project_tests(root: Path) -> TestsRun:
    """Run the tests of a folder (`agents.repair.test_run`)."""
    from agents.repair.test_run import run_tests  # with the sandbox: not needed before an edit

    results = await run_tests(root)
    return TestsRun(len(results.passed), tuple(sorted(results.failed)), problem=results.problem)


def tests_markdown(run: TestsRun) -> str:
    """A run as the text of a message."""
    parts = [f"**{run.sentence}**" + (f" {run.used}" if run.used else "")]
    if run.failed:
        more = len(run.failed) - _NAMED
        rows = [f"- `{name.removeprefix('::')}`" for name in run.failed[:_NAMED]]
        parts.append("\n".join([*rows, *([f"- and {more} more"] if more > 0 else [])]))
    if run.output.strip():
        text = run.output.strip("\n")[-_SHOWN_CHARS:]
        longest = 3
        while "`" * longest in text:
            longest += 1
        parts.append(f"{'`' * longest}text\n{text}\n{'`' * longest}")
    return "\n\n".join(parts)
