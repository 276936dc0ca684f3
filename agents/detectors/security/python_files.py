"""The parsed Python files of a workspace, and which of them are tests."""

import re
from collections.abc import Iterator

from agents.detectors.audit.python_module import PythonModule, module_of
from agents.detectors.detector import DetectorContext
from agents.workspace.workspace import Workspace

_TEST_PATH = re.compile(r"(^|/)(tests?|testing|__tests__|spec|specs|fixtures|testdata)/|(^|/)(test_[^/]*|conftest)\.py$"
                        r"|_test\.(py|go)$|\.(test|spec)\.[jt]sx?$")  # fmt: skip


def is_test_path(path: str) -> bool:
    """Whether a file belongs to a test suite, by its path beneath the root."""
    return bool(_TEST_PATH.search(path))


def python_modules(workspace: Workspace, context: DetectorContext) -> Iterator[PythonModule]:
    """Every Python file that parses.

    Raises:
        Cancelled: the run was cancelled.
    """
    for file in workspace.of("python"):
        context.check_cancelled()
        module = module_of(file)
        if module is not None:
            yield module
