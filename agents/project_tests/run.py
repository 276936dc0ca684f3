"""`run_tests`: runs a project's tests in its own environment and reads which pass and which fail.

Tests are the project's own code. They run only after an approval, and in the sandbox: without network, with
write access to the given folder and a temporary one alone. Nothing is installed.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agents.project_tests.plan import TestCommand, TestPlan, find_test_plan
from agents.project_tests.results import (
    MAX_REPORT_BYTES,
    TestResults,
    results_of,
    wants_fewer_options,
)
from agents.project_tests.small_files import text_of
from agents.project_tests.test_files import test_files
from agents.sandbox.choice import open_sandbox
from agents.sandbox.policy import Limits, SandboxMode, SandboxPolicy
from agents.sandbox.sandbox import Command, CommandResult, SandboxFailed, SandboxUnavailable
from agents.sandbox.scratch import scratch_folder
from agents.workspace.workspace import list_files

TESTS_S = 600.0
_MEMORY_BYTES = 4 << 30
_MAPPING = re.compile(r"^MAPPING[^=]*= *(\{.*\})", re.MULTILINE)
_MAPPED = re.compile(r"""['"][\w.]+['"]\s*:\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True, slots=True)
class Execution:
    """A command that has ended.

    Attributes:
        status: its exit status.
        text: its output, the middle left out if it is long.
        ended_by: why it was ended, as a sentence; empty if it ended by itself.
        report: its JUnit file; None if there is none.
        output: file with the whole output, or None.
    """

    status: int
    text: str
    ended_by: str = ""
    report: bytes | None = None
    output: Path | None = None


Execute = Callable[[TestCommand], Awaitable[Execution]]


async def run_tests(
    root: Path,
    paths: Sequence[str] = (),
    *,
    origin: Path | None = None,
    command: TestCommand | None = None,
    timeout_s: float = TESTS_S,
    sandbox: SandboxMode = "auto",
    output: Path | None = None,
) -> TestResults:
    """Run the tests in a folder, those of some test files or all.

    Args:
        root: the folder; tests may change files in it.
        paths: test files relative to it; none runs all.
        origin: the project that the folder is a copy of, where the environment is looked for; None if it
            is no copy.
        command: what ran the tests before (`TestResults.command`), so that it is not looked for again.
        timeout_s: seconds after which the tests are killed.
        sandbox: which sandbox they run in; without one they do not run, unless it is `off`.
        output: file that gets the whole output, up to a bound; it must not exist.
    """
    project = root if origin is None else origin
    own = await asyncio.to_thread(_own_names, root)
    more = await asyncio.to_thread(test_files, root, paths)
    if command is None:
        plan = await asyncio.to_thread(find_test_plan, project, more=more)
    else:
        plan = TestPlan((command,), (), has_tests=True)
    if not plan.has_tests:
        return TestResults()

    async def execute(one: TestCommand) -> Execution:
        return await _execute(
            one, root, project, paths, timeout_s=timeout_s, sandbox=sandbox, output=output
        )

    if paths:
        usable = [one for one in plan.commands if one.kind != "command"]
        if not more.any or any(one.kind == "pytest" for one in usable):
            pass
        elif more.need_pytest:
            return TestResults(
                problem=f"{more.need_pytest[0]} needs pytest. {plan.missing}".strip()
            )
        plan = replace(plan, commands=tuple(usable))
    try:
        return await first_outcome(plan, execute, own)
    except (SandboxUnavailable, SandboxFailed) as error:
        return TestResults(problem=str(error))


async def first_outcome(plan: TestPlan, execute: Execute, own: frozenset[str]) -> TestResults:
    """The outcome of the first command that has one; of the first command if none has.

    Args:
        plan: the commands.
        execute: runs one.
        own: names of the project's modules (`results_of`).
    """
    first: TestResults | None = None
    for command in plan.commands:
        found = await _outcome(command, execute, own)
        if not found.problem:
            return _partial(found, plan)
        if first is None or (not first.any and found.any):
            first = found
        if found.command is None:  # it was killed: another one would be, too
            break
    if first is not None:
        return first
    return TestResults(problem=plan.missing)


async def _outcome(command: TestCommand, execute: Execute, own: frozenset[str]) -> TestResults:
    done = await execute(command)
    if not done.ended_by and wants_fewer_options(command, done.status, done.text):
        bare = command.without_options()
        if bare.words != command.words:
            why = f"{command.why}; the project's options for pytest were left out, as plugins are missing"
            command = replace(bare, why=why)
            done = await execute(command)
    if done.ended_by:
        return TestResults(problem=done.ended_by, output=done.output)
    found = results_of(command, done.status, done.text, done.report, own)
    return replace(found, output=done.output)


def _partial(found: TestResults, plan: TestPlan) -> TestResults:
    """With a word about the test files that the command cannot run."""
    command = found.command
    if command is None or command.kind != "unittest" or not plan.need_pytest:
        return found
    files = plan.need_pytest
    count = "1 test file needs" if len(files) == 1 else f"{len(files)} test files need"
    text = f"{count} pytest, which is not installed, first {files[0]}."
    return replace(found, not_run=text)


async def _execute(
    command: TestCommand,
    root: Path,
    project: Path,
    paths: Sequence[str],
    *,
    timeout_s: float,
    sandbox: SandboxMode,
    output: Path | None,
) -> Execution:
    with scratch_folder("pravaha-report-") as folder:
        report = folder / "report.xml"
        words = _words(command, root, project, report, paths)
        limits = Limits(memory_bytes=_MEMORY_BYTES, cpu_s=2 * int(timeout_s) + 1, wall_s=timeout_s)
        policy = SandboxPolicy(
            "developer" if command.kind == "command" else "restricted",
            readable=outside_of(root, command.readable),
            writable=(root, folder),
            limits=limits,
        )
        variables = {
            **command.variables,
            **await asyncio.to_thread(search_paths, command, root, project),
        }
        runner = await open_sandbox(sandbox)
        artifact = await asyncio.to_thread(_free, output)
        done = await runner.run(
            Command(words, root, variables, artifact, programs=command.programs), policy
        )
        kept = await asyncio.to_thread(keep_output, done, artifact)
        data = await asyncio.to_thread(report_of, report)
    ended_by = ""
    if done.ended_by == "the time limit":
        ended_by = f"The tests took more than {timeout_s:g} s."
    elif done.ended_by:
        ended_by = f"The tests were ended by {done.ended_by}."
    return Execution(done.status, done.absent or done.output.text, ended_by, data, kept)


def _words(
    command: TestCommand, root: Path, project: Path, report: Path, paths: Sequence[str]
) -> list[str]:
    words = list(command.words)
    if root != project and words[0].startswith("./"):
        words[0] = str(project / words[0])
    if command.kind == "pytest":
        return [*words, f"--junit-xml={report}", *paths]
    if command.kind == "unittest":
        return [*words[:2], str(report), *(paths or command.files)]
    return words


def outside_of(root: Path, folders: Iterable[Path]) -> tuple[Path, ...]:
    """Those of the folders that exist and do not lie in a project."""
    real = os.path.realpath(root)
    return tuple(
        path
        for path in dict.fromkeys(folders)
        if path.exists() and not Path(os.path.realpath(path)).is_relative_to(real)
    )


def search_paths(command: TestCommand, root: Path, project: Path) -> dict[str, str]:
    """`PYTHONPATH` with which a copy of the project is imported instead of the project itself.

    An environment in which the project is installed as editable names the project's folder; this is what
    would be tested. `src` is there for a project that is not installed.
    """
    if command.kind == "command":
        return {}
    folders = [root / "src"] if (root / "src").is_dir() else []
    if root != project:
        folders += [root / one for one in _editable(command.packages, project)]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(map(str, folders)))} if folders else {}


def _editable(packages: Sequence[Path], project: Path) -> Iterator[Path]:
    """Folders of the project, relative to it, that an environment has on its search path."""
    for folder in packages:
        for file in sorted(folder.glob("*.pth")):
            for line in text_of(file).splitlines():
                yield from _below(line.strip(), project)
        for file in sorted(folder.glob("__editable___*_finder.py")):
            match = _MAPPING.search(text_of(file))
            for path in _MAPPED.findall(match[1]) if match is not None else ():
                yield from _below(os.path.dirname(path), project)


def _below(path: str, project: Path) -> Iterator[Path]:
    if os.path.isabs(path):
        real = Path(os.path.realpath(path))
        if real.is_relative_to(os.path.realpath(project)):
            yield real.relative_to(os.path.realpath(project))


def _free(file: Path | None) -> Path | None:
    """The file if it does not exist yet."""
    return None if file is None or file.exists() else file


def keep_output(done: CommandResult, file: Path | None) -> Path | None:
    """The file with the whole output, which is written now if head and tail have all of it."""
    if done.output.artifact is not None or file is None:
        return done.output.artifact
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(done.output.text, encoding="utf-8")
    except OSError:
        return None  # the disk is full: the outcome does not depend on it
    return file


def report_of(path: Path) -> bytes | None:
    """The report's bytes, or None if there is none. The tests may have put anything in its place."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_REPORT_BYTES:
        return None
    return path.read_bytes()


def _own_names(root: Path) -> frozenset[str]:
    """Names that the project's own modules and packages may be imported by."""
    return own_names(list_files(root))


def own_names(paths: Sequence[str]) -> frozenset[str]:
    """Names that modules and packages among these files may be imported by."""
    parts = {part for path in paths for part in path.split("/")}
    return frozenset(part.removesuffix(".py") for part in parts)
