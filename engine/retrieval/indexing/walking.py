"""Finds the files of a source: a file, a folder, or a glob pattern.

Inside folders it follows git: files that a `.gitignore` or `.git/info/exclude` names are left out, and so
are hidden ones. A path that is named itself is always taken. Links inside folders are not followed, so
cycles of links end and nothing outside of the folder is read.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import ignore
from ignore.overrides import Override, OverrideBuilder

from engine.api.error_text import as_sentence
from engine.api.errors import InvalidRequest
from engine.retrieval.store.records import Source


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index.

    Attributes:
        path: absolute path.
        size: in bytes.
        mtime_ns: time of its last change.
        source: what it was found by.
    """

    path: str
    size: int
    mtime_ns: int
    source: Source


def absolute_pattern(path: str) -> str:
    """A path or pattern, independent of the working directory. Links in it are kept as they are."""
    return os.path.abspath(os.path.expanduser(path))


def is_glob(pattern: str) -> bool:
    """Whether a pattern is to be expanded: it has `*`, `?` or `[`, and there is no file of that very name."""
    return glob.has_magic(pattern) and not os.path.lexists(pattern)


def find_files(source: Source) -> list[FoundFile]:
    """The regular files of a source, by path. Folders that cannot be opened are left out.

    Raises:
        InvalidRequest: an exclude pattern is malformed.
    """
    found: dict[str, FoundFile] = {}
    for root in _roots(source.pattern):
        for path in _walk(root, source.exclude) if os.path.isdir(root) else [root]:
            try:
                status = os.stat(path)
            except OSError:
                continue  # it vanished, or a link leads nowhere
            if S_ISREG(status.st_mode) and not _is_removed(path, source.removed):
                found[path] = FoundFile(path, status.st_size, status.st_mtime_ns, source)
    return [found[path] for path in sorted(found)]


def find_all_files(sources: Sequence[Source]) -> list[FoundFile]:
    """The regular files of several sources, by path; of one that is in several, the last source counts."""
    found: dict[str, FoundFile] = {}
    for source in sources:
        found.update((one.path, one) for one in find_files(source))
    return [found[path] for path in sorted(found)]


def watched_folder(pattern: str) -> str:
    """The folder in which changes can concern a source."""
    if os.path.isdir(pattern):
        return pattern
    folder = os.path.dirname(pattern)
    while glob.has_magic(folder) and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def fixed_folder(pattern: str) -> str:
    """The folder that a source names: its own, or for a glob pattern the one before the first wildcard."""
    if not glob.has_magic(pattern) or os.path.lexists(pattern):
        return pattern
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def stored_path(path: str) -> str:
    r"""A path as the database and the screen can hold it: bytes that are no UTF-8 become `\xff`."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is that of a file or folder, or of something in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_removed(path: str, removed: tuple[str, ...]) -> bool:
    return any(is_inside(stored_path(path), one) for one in removed)


def _roots(pattern: str) -> list[str]:
    if not is_glob(pattern):
        return [pattern]
    return [absolute_pattern(one) for one in glob.iglob(pattern, recursive=True)]


def _walk(root: str, exclude: tuple[str, ...]) -> Iterator[str]:
    walk = (
        ignore.WalkBuilder(Path(root))
        .ignore(False)
        .require_git(False)
        .overrides(_overrides(root, exclude))
        .build()
    )
    while True:
        try:
            entry = next(walk)
        except StopIteration:
            return
        except (ignore.Error, ignore.IOError, OSError):
            continue  # a folder without permission, or one that has vanished
        path = str(entry.path())
        if not os.path.islink(path):
            yield path


def _overrides(root: str, exclude: tuple[str, ...]) -> Override:
    builder = OverrideBuilder(Path(root))
    for pattern in exclude:
        try:
            builder.add(f"!{pattern}")
        except ignore.Error as error:
            raise InvalidRequest(
                f"The pattern {pattern} cannot be excluded: {as_sentence(error)}", param="exclude"
            ) from error
    return builder.build()
