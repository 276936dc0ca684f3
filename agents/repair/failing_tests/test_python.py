"""`TestPython`: the interpreter that runs a project's tests, with its options."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents.project_tests.plan import TestCommand
from agents.project_tests.run import outside_of, search_paths
from agents.sandbox.policy import SandboxMode


@dataclass(frozen=True, slots=True)
class TestPython:
    """What runs the tests.

    Attributes:
        program: the interpreter, which has pytest.
        options: of pytest.
        readable: folders that the sandbox must show beside the project.
        variables: of the environment.
        programs: folders that are searched for programs first.
        plugins: whether pytest loads the plugins that are installed beside it.
        sandbox: which sandbox.
    """

    __test__ = False  # pytest must not collect it

    program: str = field(default_factory=lambda: sys.executable)
    options: tuple[str, ...] = ("-q", "-p", "no:cacheprovider", "-o", "addopts=")
    readable: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[Path, ...] = ()
    plugins: bool = True
    sandbox: SandboxMode = "auto"

    @classmethod
    def of(cls, command: TestCommand, root: Path, project: Path) -> "TestPython | None":
        """What ran the tests before; None if that was not pytest.

        Args:
            command: what ran.
            root: a copy of the project.
            project: the project.
        """
        if command.kind != "pytest":
            return None
        program = command.words[0]
        if program.startswith("./"):
            program = str(project / program)
        options = command.words[command.words.index("pytest") + 1 :]
        variables = {**command.variables, **search_paths(command, root, project)}
        return cls(
            program, options, outside_of(root, command.readable), variables, command.programs
        )
