"""`run_trials`: the outcomes of a project's tests with some files changed, in one sandboxed process.

A trial takes a tenth of what a run of its own takes (`pytest_probe`), so it decides what is worth a
decision of the gate, which runs the tests in a new process.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.repair.failing_tests import pytest_probe
from agents.repair.failing_tests.test_python import TestPython
from agents.sandbox.choice import open_sandbox
from agents.sandbox.policy import Limits, SandboxPolicy
from agents.sandbox.sandbox import Command
from agents.sandbox.scratch import scratch_folder

PROBE = Path(pytest_probe.__file__)
LATE = "there was no time left to run it"
_MEMORY_BYTES = 4 << 30
_MAX_RESULT_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Trial:
    """One run.

    Attributes:
        files: texts by path that stand in the project meanwhile; None for no file.
        tests: node ids; none runs all.
        lines: whether the lines that each test runs are recorded.
    """

    files: Mapping[str, str | None] = field(default_factory=dict)
    tests: Sequence[str] = ()
    lines: bool = False


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of it.

    Attributes:
        outcomes: `passed`, `failed` or `skipped` by node id.
        texts: what pytest said about each failure.
        lines: by node id, the lines that ran by path.
        problem: why there are no outcomes, or empty.
    """

    outcomes: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    problem: str = ""

    @property
    def passed(self) -> frozenset[str]:
        """Node ids of the tests that passed."""
        return frozenset(name for name, one in self.outcomes.items() if one == "passed")

    @property
    def failed(self) -> frozenset[str]:
        """Node ids of those that failed or could not be collected."""
        return frozenset(name for name, one in self.outcomes.items() if one == "failed")

    def errors(self, test: str) -> list[str]:
        """What the failure of a test says: the lines that pytest marks with `E`."""
        lines = self.texts.get(test, "").split("\n")
        return [line[1:].strip() for line in lines if line.startswith("E ")]


async def run_trials(
    root: Path,
    trials: Sequence[Trial],
    python: TestPython,
    *,
    test_s: float,
    trial_s: float,
    total_s: float,
) -> list[TrialResult]:
    """Run trials one after the other; those for which no time is left have a problem.

    Args:
        root: a copy of the project. It is as before afterwards, but for what the tests themselves leave.
        trials: what to run.
        python: what runs the tests.
        test_s: seconds after which one test fails.
        trial_s: seconds after which one trial is ended.
        total_s: seconds of all together.

    Raises:
        SandboxUnavailable: there is no sandbox on this machine.
        SandboxFailed: the sandbox did not start it.
    """
    order = {
        "root": str(root),
        "seconds": trial_s,
        "test_seconds": test_s,
        "options": list(python.options),
        "plugins": python.plugins,
        "trials": [
            {"files": dict(one.files), "tests": list(one.tests), "lines": one.lines}
            for one in trials
        ],
    }
    with scratch_folder("pravaha-trials-") as folder:
        asked, result = folder / "order.json", folder / "result.jsonl"
        asked.write_text(json.dumps(order), encoding="utf-8")
        limits = Limits(
            memory_bytes=_MEMORY_BYTES,
            cpu_s=2 * int(total_s) + 1,
            wall_s=total_s,
            file_bytes=_MAX_RESULT_BYTES,
        )
        policy = SandboxPolicy(
            readable=(PROBE, *python.readable), writable=(root, folder), limits=limits
        )
        words = [python.program, str(PROBE), str(asked), str(result)]
        runner = await open_sandbox(python.sandbox)
        variables = {**python.variables, "PYTHONDONTWRITEBYTECODE": "1"}
        done = await runner.run(Command(words, root, variables, programs=python.programs), policy)
        if result.is_symlink() or not result.is_file():
            lines = done.output.text.strip().splitlines()
            why = done.absent or (lines[-1][:200] if lines else "the tests did not start")
            return [TrialResult(problem=why) for _ in trials]
        found = await asyncio.to_thread(_read, result)
    late = TrialResult(problem=LATE)
    return (found + [late] * len(trials))[: len(trials)]


def _read(file: Path) -> list[TrialResult]:
    """The trials that were finished. The file may have some hundred MiB."""
    return [_result(line) for line in file.read_text("utf-8", "replace").splitlines()]


def _result(line: str) -> TrialResult:
    """One line of the result, which a test of the project may have written to."""
    try:
        given = json.loads(line)
        return TrialResult(
            {str(name): str(one) for name, one in given["outcomes"].items()},
            {str(name): str(one) for name, one in given["texts"].items()},
            {
                str(name): {str(path): [int(one) for one in lines] for path, lines in by.items()}
                for name, by in given["lines"].items()
            },
            str(given["problem"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return TrialResult(problem="The outcome of the tests is not usable.")
