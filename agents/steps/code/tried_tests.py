"""`TriedTests`: a project's tests on copies of it, each with one change. `TestsPass` is the check.

The tests run first as the project is; of a change is asked that every test that passed still does, and those
that were named pass. Each run has a fresh copy, so that nothing that a test leaves behind decides the next.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.edits import FileEdit
from agents.project_tests.plan import TestCommand
from agents.project_tests.results import TestResults
from agents.sandbox.scratch import scratch_folder
from agents.steps.code.change_checks import ChangeOf
from agents.width.candidate import Outcome
from agents.workspace.workspace import list_files

MAX_COPY_BYTES = 64 << 20
RunTests = Callable[[Path, Sequence[str], TestCommand | None], Awaitable[TestResults]]
"""Runs the tests of a folder: all, or those of some files, with a command, or one that is looked for."""


class TriedTests:
    """The tests of one project. Use from one event loop."""

    def __init__(self, root: Path, run: RunTests) -> None:
        self._root = root
        self._run = run
        self.before = TestResults(problem="The tests have not run.")

    async def start(self) -> TestResults:
        """Run them as the project is."""
        self.before = await self.on(())
        return self.before

    async def on(
        self,
        edits: Sequence[FileEdit],
        *,
        more: dict[str, str] | None = None,
        paths: Sequence[str] = (),
    ) -> TestResults:
        """Run them on a copy.

        Args:
            edits: what is changed in the copy.
            more: texts of further files by path, such as a new test.
            paths: test files; none for all.
        """
        with scratch_folder("pravaha-tests-") as folder:
            copy = folder / (self._root.name or "project")
            changed = {edit.path: edit.after for edit in edits}
            changed |= {path: text.encode() for path, text in (more or {}).items()}
            copying = asyncio.ensure_future(asyncio.to_thread(_copied, self._root, copy, changed))
            try:
                is_whole = await asyncio.shield(copying)
            finally:
                # The folder is not removed under a thread that still writes to it.
                await asyncio.wait({copying})
            if not is_whole:
                return TestResults(
                    problem=f"The project is larger than {MAX_COPY_BYTES >> 20} MiB."
                )
            # A new test file may need another command than the project's own tests.
            command = None if paths else self.before.command
            return await self._run(copy, paths, command)


def _copied(root: Path, copy: Path, changed: Mapping[str, bytes]) -> bool:
    """Copy the files that git does not ignore, links left out, then write those that are changed.

    Whether the project is not too large.
    """
    copy.mkdir()
    left = MAX_COPY_BYTES
    for name in list_files(root):
        source = root / name
        if source.is_symlink() or not source.is_file():
            continue
        left -= source.stat().st_size
        if left < 0:
            return False
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    for name, data in changed.items():
        _write(copy / name, data)
    return True


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@dataclass(frozen=True, slots=True)
class TestsPass:
    """The project's tests, after they ran once without a change. Costs as long as they take.

    Attributes:
        tests: started.
        change_of: what code changes.
        wanted: names of tests that failed and must pass; empty asks for those that a change can mend.
    """

    __test__ = False  # pytest must not collect it

    tests: TriedTests
    change_of: ChangeOf
    wanted: frozenset[str] = frozenset()
    name: str = "tests"

    @property
    def decides(self) -> bool:
        """Tests decide if any ran."""
        return self.tests.before.any

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        before = self.tests.before
        if not before.any:
            return Outcome(self.name, True, "There are no tests that run.", 1.0)
        after = await self.tests.on(self.change_of(code).edits)
        if after.problem:
            return Outcome(self.name, False, after.problem)
        broken = sorted(before.passed - after.passed)
        left = sorted(self.wanted - after.passed)
        total = max(1, len(before.passed | self.wanted))
        score = 1 - len({*broken, *left}) / total
        if broken:
            more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
            return Outcome(
                self.name, False, f"The test {_short(broken[0])}{more} fails now.", score
            )
        if left:
            return Outcome(self.name, False, f"The test {_short(left[0])} still fails.", score)
        mended = len(before.failed & after.passed)
        said = f"{len(after.passed)} tests pass" + (
            f", {mended} of which failed before" if mended else ""
        )
        if after.failed:
            said += f"; {len(after.failed)} fail as before"
        return Outcome(self.name, True, f"{said}.", 1.0)


def _short(name: str) -> str:
    return name.rpartition("::")[2] or name
