"""`TestPython`: the interpreter that runs a project's tests, with its options."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents.sandbox.policy import SandboxMode


@dataclass(frozen=True, slots=True)
class TestPython:
    """What runs the tests.

    Attributes:
        program: the interpreter, which has pytest.
        options: of pytest.
        readable: folders that the sandbox must show beside the project.
        variables: of the environment.
        plugins: whether pytest loads the plugins that are installed beside it.
        sandbox: which sandbox.
    """

    __test__ = False  # pytest must not collect it

    program: str = field(default_factory=lambda: sys.executable)
    options: tuple[str, ...] = ("-q", "-p", "no:cacheprovider", "-o", "addopts=")
    readable: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    plugins: bool = True
    sandbox: SandboxMode = "auto"
