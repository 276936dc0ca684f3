"""`Workspace`: the files beneath one root, as agents see them.

Opening walks the folder once, follows `.gitignore` through git where there is a repository, and reads every
text file up to `MAX_FILE_BYTES`. What is left out is listed with its reason. Symbolic links are not followed,
so nothing outside the root is read.
"""

import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agents.api.errors import InvalidTask
from agents.workspace.source_file import SourceFile

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 20_000
MAX_TOTAL_BYTES = 256 << 20
_GIT_TIMEOUT_S = 20.0
_SKIPPED_FOLDERS = frozenset([
    ".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".tox", ".hypothesis",
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that is not looked at, with the reason as a short clause."""

    path: str
    reason: str


class Workspace:
    """Files beneath a root; immutable once opened.

    Attributes:
        root: the absolute folder.
        files: by path, sorted.
        skipped: what was left out.
    """

    def __init__(
        self, root: Path, files: Iterable[SourceFile], skipped: Iterable[SkippedFile] = ()
    ) -> None:
        self.root = root
        self.files = tuple(sorted(files, key=lambda file: file.path))
        self.skipped = tuple(skipped)
        self._by_path = {file.path: file for file in self.files}

    def __iter__(self) -> Iterator[SourceFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def get(self, path: str) -> SourceFile | None:
        """The file with this path, or None."""
        return self._by_path.get(path)

    def of(self, *languages: str) -> Iterator[SourceFile]:
        """The files in any of these languages."""
        return (file for file in self.files if file.language in languages)

    @classmethod
    def of_texts(cls, texts: dict[str, str], root: Path | None = None) -> "Workspace":
        """A workspace of texts by path, such as a document in a prompt. `root` need not exist."""
        return cls(
            root or Path("/nonexistent"),
            [SourceFile(path, text.encode()) for path, text in texts.items()],
        )

    def with_text(self, path: str, text: str) -> "Workspace":
        """The same with another text of one file; the other files are shared, with their syntax trees."""
        others = (file for file in self.files if file.path != path)
        return Workspace(self.root, [*others, SourceFile(path, text.encode())], self.skipped)


def open_workspace(paths: Sequence[Path]) -> Workspace:
    """The workspace of files and folders given by a user.

    The root is the folder, if exactly one is given; otherwise the nearest folder that holds all paths.

    Raises:
        InvalidTask: a path does not exist or cannot be read, or there are too many files.
    """
    given = [path.absolute() for path in paths or [Path()]]
    for path in given:
        if not path.exists():
            raise InvalidTask(f"There is no file or folder {path}.")
    root = given[0] if len(given) == 1 and given[0].is_dir() else _common_folder(given)
    names: dict[str, None] = {}
    for path in given:
        if path.is_dir():
            names |= dict.fromkeys(_relative(found, root) for found in _walk(path))
        else:
            names[_relative(path, root)] = None
        if len(names) > MAX_FILES:
            raise InvalidTask(
                f"{path} has more than {MAX_FILES:,} files: name the folders to look at."
            )
    return _read_all(root, names)


def list_files(root: Path) -> list[str]:
    """Paths of the files beneath a folder, relative with `/`, as `open_workspace` would look at them."""
    return [_relative(path, root) for path in _walk(root)]


def _common_folder(paths: Sequence[Path]) -> Path:
    folders = [path if path.is_dir() else path.parent for path in paths]
    return Path(os.path.commonpath(folders))


def _relative(path: Path, root: Path) -> str:
    return str(PurePosixPath(path.relative_to(root)))


def _walk(folder: Path) -> Iterator[Path]:
    """The files that git does not ignore, or all but well-known caches where there is no repository."""
    listed = _listed_by_git(folder)
    if listed is not None:
        yield from (folder / name for name in listed)
        return
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED_FOLDERS and not _is_environment(Path(directory, name))
        )
        yield from (Path(directory, name) for name in sorted(names))


def _listed_by_git(folder: Path) -> list[str] | None:
    """Tracked files and untracked ones that are not ignored, relative to `folder`; None without git."""
    command = [
        "git",
        "-C",
        str(folder),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    names = _without_environments(names)
    # An ignored folder inside a repository lists nothing: it was named on purpose, so walk it.
    return sorted(set(names)) or None


def _is_environment(folder: Path) -> bool:
    """Whether a folder is a virtual environment or one of conda's: its files are not the project's."""
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def _without_environments(names: list[str]) -> list[str]:
    """The files outside of environments that git was not told to ignore."""
    marks = ("/pyvenv.cfg", "/conda-meta/history")
    inside = tuple(
        f"{name.removesuffix(mark)}/" for name in names for mark in marks if name.endswith(mark)
    )
    return [name for name in names if not name.startswith(inside)] if inside else names


def _read_all(root: Path, names: Iterable[str]) -> Workspace:
    files: list[SourceFile] = []
    skipped: list[SkippedFile] = []
    total = 0
    for name in names:
        data, reason = _read(root / name)
        if data is None:
            if reason:
                skipped.append(SkippedFile(name, reason))
            continue
        total += len(data)
        if total > MAX_TOTAL_BYTES:
            raise InvalidTask(
                f"{root} has more than {MAX_TOTAL_BYTES >> 20} MiB of text: name the folders to look at."
            )
        files.append(SourceFile(name, data))
    return Workspace(root, files, skipped)


def _read(path: Path) -> tuple[bytes | None, str]:
    """The bytes, or None and the reason; an empty reason for what is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, ""  # tracked by git, deleted in the working tree
    except OSError as error:
        return None, "symbolic link" if path.is_symlink() else (
            error.strerror or str(error)
        ).lower()
    with os.fdopen(descriptor, "rb") as file:
        try:
            status = os.fstat(file.fileno())
            if stat.S_ISDIR(status.st_mode):
                return None, ""  # a submodule
            if not stat.S_ISREG(status.st_mode):
                return None, "no regular file"
            if status.st_size > MAX_FILE_BYTES:
                return None, f"larger than {MAX_FILE_BYTES // 1000:,} kB"
            data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            return None, (error.strerror or str(error)).lower()
    if b"\0" in data[:8192]:
        return None, "binary"
    return data, ""
