"""Files that a repair never changes: tests, and what steers test runners and checkers.

A change of one of them can make a wrong program pass.
"""

from pathlib import PurePosixPath

from agents.detectors.audit.python_module import is_test_path

_NAMES = frozenset(
    ["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml",
     "pyproject.toml", "tox.ini", "setup.cfg", "noxfile.py",
     "sitecustomize.py", "usercustomize.py", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", ".bandit",
     ".flake8", ".pylintrc", ".coveragerc", ".semgrepignore", ".secrets.baseline", ".pre-commit-config.yaml",
     ".gitignore", ".gitattributes", "makefile", "jest.config.js", "vitest.config.ts", "package.json"]
)  # fmt: skip


def is_protected(path: str) -> bool:
    """Whether a repair may not change this file."""
    name = PurePosixPath(path).name.lower()
    return is_test_path(path) or name in _NAMES or name.endswith(".pth")
