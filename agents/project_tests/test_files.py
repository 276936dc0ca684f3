"""`TestFiles`: a project's Python test files, and which of them need pytest."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agents.project_tests.small_files import text_of

_NAME = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|tests)\.py$")
_PYTEST = re.compile(r"^\s*(import|from)\s+_?pytest\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestFiles:
    """Test files relative to the project, with `/`.

    Attributes:
        plain: those that `unittest_runner` can run: test cases of unittest, functions without parameters.
        need_pytest: all others.
    """

    __test__ = False  # pytest must not collect it

    plain: tuple[str, ...] = ()
    need_pytest: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.plain or self.need_pytest)


def is_test_file(path: str) -> bool:
    """Whether a path relative to the project is that of a Python test file."""
    return _NAME.search(path) is not None


def test_files(root: Path, paths: Iterable[str]) -> TestFiles:
    """Those among a project's files; a test file with the fixtures of a `conftest.py` needs pytest."""
    plain: list[str] = []
    others: list[str] = []
    names = sorted(paths)
    fixtures = [one.rpartition("/")[0] for one in names if re.search(r"(^|/)conftest\.py$", one)]
    for name in names:
        if not is_test_file(name):
            continue
        folder = name.rpartition("/")[0]
        below = any(not one or folder == one or folder.startswith(f"{one}/") for one in fixtures)
        text = text_of(root / name)
        if (
            name.rpartition("/")[2] == "tests.py"
            and "unittest" not in text
            and "TestCase" not in text
        ):
            continue  # a module of that name is a test file by its content alone
        (others if below or _needs_pytest(text) else plain).append(name)
    return TestFiles(tuple(plain), tuple(others))


test_files.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it


def _needs_pytest(text: str) -> bool:
    if _PYTEST.search(text):
        return True
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False  # it fails with either
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test"
        ):
            arguments = node.args
            if isinstance(node, ast.AsyncFunctionDef) or arguments.args or arguments.kwonlyargs:
                return True
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not node.bases:
            return True
    return False
