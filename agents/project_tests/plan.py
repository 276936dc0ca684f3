"""`find_test_plan`: the commands that can run a project's tests, the best first, and what is missing.

For Python tests these are, in the order of `python_search`, the environments that have pytest; one without
pytest is taken if no test needs it. Then come the commands of other languages, make and just. Nothing is
executed or installed here.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from agents.project_tests import unittest_runner
from agents.project_tests.commands import ToolCommand, read_by, tool_commands
from agents.project_tests.pytest_options import kept_options
from agents.project_tests.python_environment import PythonEnvironment, environment_in
from agents.project_tests.python_search import (
    IN_PROJECT,
    Surroundings,
    folders_up,
    manager_of,
    python_environments,
)
from agents.project_tests.small_files import text_of
from agents.project_tests.test_files import TestFiles, test_files
from agents.workspace.workspace import list_files

Kind = Literal["pytest", "unittest", "command"]
RUNNER = Path(unittest_runner.__file__)
MAX_COMMANDS = 3
"""Commands that are tried at most."""
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short")


@dataclass(frozen=True, slots=True)
class TestCommand:
    """One way to run a project's tests.

    Attributes:
        kind: how its outcome is read: `command` has an exit status only.
        name: the environment or tool, for people.
        why: why it is taken, as the end of a sentence.
        words: the program and its arguments; a program of the project's folder has a relative path.
        files: test files that are arguments of their own, for the kind `unittest`.
        readable: folders that the sandbox must show beside the project.
        programs: folders that are searched for programs before those of PATH.
        variables: what it is run with.
        packages: folders of installed packages.
    """

    __test__ = False  # pytest must not collect it

    kind: Kind
    name: str
    why: str
    words: tuple[str, ...]
    files: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[Path, ...] = ()

    @property
    def line(self) -> str:
        """What a person is asked to allow."""
        return shlex.join((*self.words, *self.files))

    def without_options(self) -> "TestCommand":
        """The same without the project's own options for pytest, for which plugins are missing."""
        end = self.words.index("-o") if "-o" in self.words else len(self.words)
        bare = ("-o", "addopts=", "-o", "required_plugins=", "-o", "filterwarnings=")
        return replace(self, words=(*self.words[:end], *bare))


@dataclass(frozen=True, slots=True)
class TestPlan:
    """What can run a project's tests.

    Attributes:
        commands: the best first; empty if nothing can.
        problems: one sentence for each thing that is broken or missing.
        has_tests: whether the project has tests that are known as such.
        need_pytest: its test files that run with pytest alone.
    """

    __test__ = False  # pytest must not collect it

    commands: tuple[TestCommand, ...] = ()
    problems: tuple[str, ...] = ()
    has_tests: bool = False
    need_pytest: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """Why nothing can run and what to do, in one or two sentences; empty if something can."""
        if self.commands:
            return ""
        if not self.has_tests:
            return "The project has no tests."
        return self.advice or "Nothing here can run the tests."

    @property
    def advice(self) -> str:
        """What is broken or missing, the first two things."""
        return " ".join(self.problems[:2])


def find_test_plan(
    root: Path,
    around: Surroundings | None = None,
    *,
    names: Iterable[str] | None = None,
    more: TestFiles | None = None,
) -> TestPlan:
    """The plan for a project's folder. Looks at files only; takes milliseconds beside listing them.

    Args:
        root: the project's folder.
        around: what of the machine counts; None takes this process's.
        names: paths of its files; None lists them.
        more: test files that the project gets beside its own.
    """
    around = Surroundings.here() if around is None else around
    files = frozenset(list_files(root) if names is None else names)
    tests = test_files(root, files)
    if more is not None:
        tests = TestFiles((*tests.plain, *more.plain), (*tests.need_pytest, *more.need_pytest))
    commands: list[TestCommand] = []
    problems: list[str] = []
    if tests.any:
        commands, problems = _python(root, around, tests)
    tools = list(tool_commands(root, around, files))
    problems += [one.missing for one in tools if one.missing]
    activated = commands[0] if commands else None
    commands += [_of_tool(one, activated) for one in tools if not one.missing]
    has_tests = bool(tests.any or tools)
    return TestPlan(tuple(commands[:MAX_COMMANDS]), tuple(problems), has_tests, tests.need_pytest)


def environments_for(
    root: Path, program: str, around: Surroundings | None = None
) -> list[PythonEnvironment]:
    """The project's own environment, if it has one, and that of an interpreter that is called by its path.

    Its own is the first of `python_search` before those that do not belong to it: PATH's and Pravāha's.
    """
    around = Surroundings.here() if around is None else around
    found = (
        one
        for one in python_environments(root, around, any_python=False)
        if not isinstance(one, str)
    )
    chosen = [one for one in [next(found, None)] if one is not None]
    if "/" in program:
        path = os.path.normpath(os.path.join(root, program))
        every = python_environments(root, around)
        chosen += [one for one in every if not isinstance(one, str) and str(one.python) == path]
    return chosen


def _python(
    root: Path, around: Surroundings, tests: TestFiles
) -> tuple[list[TestCommand], list[str]]:
    commands: list[TestCommand] = []
    problems: list[str] = []
    lacking: list[PythonEnvironment] = []
    below = _environment_below(root, (*tests.plain, *tests.need_pytest))
    for found in python_environments(root, around, any_python=not below):
        if commands and not isinstance(found, str) and found.foreign:
            break  # one that belongs to the project is there: no other has its packages
        if isinstance(found, str):
            problems.append(found)
        elif found.has("pytest"):
            passed_over = next((one.name for one in lacking if not one.foreign), "")
            if passed_over:
                found = replace(found, why=f"{found.why}; {passed_over} has no pytest")
            commands.append(_pytest(root, found))
        else:
            lacking.append(found)
            if not tests.need_pytest:
                commands.append(_unittest(root, found, tests.plain))
    if not commands and tests.plain:
        # Some tests run, the others are named as missing in the outcome.
        commands += [_unittest(root, one, tests.plain) for one in lacking[:1]]
    own = [one for one in lacking if not one.foreign]
    if not commands and below:
        problems.append(
            f"Tests below {below} have an environment of their own there: give that folder."
        )
    elif not any(one.kind == "pytest" for one in commands):
        problems.append(_advice(root, around, own))
    return commands, problems


def _environment_below(root: Path, names: Iterable[str]) -> str:
    """The first folder between a test file and the project's that has an environment; empty if none has.

    Such a folder is a project in a repository of several: its tests run with its folder as working folder.
    """
    folders = {parent for name in names for parent in PurePosixPath(name).parents} - {
        PurePosixPath(".")
    }
    for folder in sorted(folders, key=lambda one: (len(one.parts), one)):
        for name in IN_PROJECT:
            if isinstance(environment_in(root / folder / name, "", ""), PythonEnvironment):
                return str(folder)
    return ""


def _pytest(root: Path, found: PythonEnvironment) -> TestCommand:
    options = kept_options(root)
    words: tuple[str, ...] = (_program(root, found.python), *_PYTEST)
    if options is not None:
        words += ("-o", f"addopts={options}")
    return _command(root, found, "pytest", words)


def _unittest(root: Path, found: PythonEnvironment, files: Sequence[str]) -> TestCommand:
    words = (_program(root, found.python), str(RUNNER), "-")
    why = f"{found.why}; it has no pytest, which these tests do not need"
    one = _command(root, replace(found, why=why), "unittest", words)
    return replace(one, files=tuple(files), readable=(*one.readable, RUNNER))


def _command(
    root: Path, found: PythonEnvironment, kind: Kind, words: tuple[str, ...]
) -> TestCommand:
    return TestCommand(
        kind, found.name, found.why, words, (), readable=found.readable, programs=(found.programs,),
        variables=found.variables, packages=found.packages,
    )  # fmt: skip


def _of_tool(tool: ToolCommand, activated: TestCommand | None) -> TestCommand:
    """A tool's command, in the project's Python environment if there is one."""
    readable = () if tool.program is None else read_by(tool.program)
    programs = () if tool.program is None else (tool.program.parent,)
    variables = dict(tool.variables)
    if activated is not None:
        readable += activated.readable
        programs = (*activated.programs, *programs)
        variables = {**activated.variables, **variables}
    return TestCommand(
        "command", f"`{tool.name}`", tool.why, tool.words, (), readable, programs, variables
    )


def _program(root: Path, python: Path) -> str:
    """How the interpreter is called from the project's folder."""
    try:
        return f"./{python.relative_to(root)}"
    except ValueError:
        return str(python)


def _advice(root: Path, around: Surroundings, lacking: list[PythonEnvironment]) -> str:
    """What the person has to do so that the tests can run."""
    for found in lacking:
        python = shlex.quote(str(found.python))
        return (
            f"{found.name[:1].upper()}{found.name[1:]} has no pytest: run "
            f"`{python} -m pip install pytest`."
        )
    for folder in folders_up(root, around.home):
        for command in _making(folder):
            return f"The project's environment is not there: run `{command}` in {folder}."
    return (
        "No Python with pytest was found for the project: run "
        f"`python3 -m venv .venv && .venv/bin/python -m pip install pytest` in {root}."
    )


_COMMANDS_OF_MANAGERS = {
    "uv": "uv sync", "poetry": "poetry install", "pdm": "pdm install", "pipenv": "pipenv install --dev",
}  # fmt: skip
_COMMANDS_OF_FILES = (
    ("environment.yml", "conda env create -f environment.yml"), ("tox.ini", "tox run --notest"),
    ("noxfile.py", "nox --install-only"), ("hatch.toml", "hatch env create"),
)  # fmt: skip


def _making(folder: Path) -> Iterator[str]:
    """Commands that make the environment that the files of a folder describe."""
    manager = manager_of(folder)
    if manager:
        yield _COMMANDS_OF_MANAGERS[manager]
    for name, command in _COMMANDS_OF_FILES:
        if (folder / name).is_file():
            yield command
    if "[tool.hatch.envs" in text_of(folder / "pyproject.toml"):
        yield "hatch env create"
