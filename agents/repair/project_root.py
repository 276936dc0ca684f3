"""`find_project`: the folder whose tests judge a change, from the path that a user names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.api.errors import InvalidTask

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini")


@dataclass(frozen=True, slots=True)
class Project:
    """Where a repair works.

    Attributes:
        root: the folder that is copied and whose tests run.
        scope: path of the audited file or folder relative to `root`, with `/`; empty for all of it.
    """

    root: Path
    scope: str = ""

    def contains(self, file: str) -> bool:
        """Whether a file of the project is audited."""
        return not self.scope or file == self.scope or file.startswith(f"{self.scope}/")


def find_project(path: Path, *, within: Sequence[Path] | None = None) -> Project:
    """The project of a file or folder: the nearest folder above it with a mark such as `pyproject.toml`.

    Without a mark it is the folder itself, or that of the file.

    Args:
        path: what is audited.
        within: folders that the project must lie in; None allows any.

    Raises:
        InvalidTask: there is no such path.
    """
    path = path.resolve()
    if not path.exists():
        raise InvalidTask(f"There is no file or folder {path}.")
    folder = path if path.is_dir() else path.parent
    root = folder
    for candidate in (folder, *folder.parents):
        if within is not None and not any(candidate.is_relative_to(one) for one in within):
            break
        if any((candidate / mark).exists() for mark in _MARKS):
            root = candidate
            break
    scope = path.relative_to(root).as_posix()
    return Project(root, "" if scope == "." else scope)
