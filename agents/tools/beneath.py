"""Opening, creating and replacing files beneath a root by descriptor.

A path is resolved by the kernel (`openat2` with `RESOLVE_BENEATH`), or, where that is missing, component by
component with `O_NOFOLLOW`. Both refuse `..`, absolute paths and symbolic links; path strings are never
compared (CWE-22, CWE-59, CWE-367). Only regular files are read: opening a FIFO or a device could block or
have effects.
"""

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from agents.api.errors import InvalidTask

MAX_FILE_BYTES = 1_000_000

_OPENAT2 = 437  # the same number on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@contextmanager
def open_root(root: Path) -> Iterator[int]:
    """A descriptor of the root folder.

    Raises:
        InvalidTask: it is no folder.
    """
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidTask(f"{root} is not a folder that can be opened.") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def parts_of(path: str) -> list[str]:
    """The components of a relative path, `.` left out.

    Raises:
        InvalidTask: the path is empty or absolute, leaves the root or has a NUL.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise InvalidTask(f"{path!r:.200} is not a path beneath the folder.")
    return parts


def open_beneath(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open `path` beneath the folder `root`; the caller closes the descriptor.

    Raises:
        InvalidTask: the path leaves the root or is a symbolic link.
        OSError: as `os.open`.
    """
    name = "/".join(parts_of(path))
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        if _has_openat2():
            return _openat2(root, name, flags, mode)
        return _open_by_walk(root, name, flags, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EXDEV):
            raise InvalidTask(f"{path!r:.200} is or passes a symbolic link.") from error
        raise


def _openat2(root: int, name: str, flags: int, mode: int) -> int:
    how = _OpenHow(flags, mode, _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.syscall(
        _OPENAT2, root, os.fsencode(name), ctypes.byref(how), ctypes.sizeof(how)
    )
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return descriptor


@cache
def _has_openat2() -> bool:
    """Linux 5.6 and later; seccomp filters of containers may deny it."""
    try:
        os.close(_openat2(os.open("/", os.O_PATH | os.O_DIRECTORY), ".", os.O_PATH, 0))
    except OSError:
        return False
    return True


def _open_by_walk(root: int, name: str, flags: int, mode: int) -> int:
    *folders, last = name.split("/")
    current = os.dup(root)
    try:
        for folder in folders:
            below = _open_folder(current, folder)
            os.close(current)
            current = below
        return os.open(last, flags, mode, dir_fd=current)
    finally:
        os.close(current)


def _open_folder(parent: int, name: str) -> int:
    try:
        return os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
        )
    except NotADirectoryError as error:  # what the kernel says of a symbolic link here
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from error
        raise


def read_beneath(root: Path, path: str) -> bytes:
    """The bytes of a regular file.

    Raises:
        InvalidTask: there is no such file, it is no regular file, or it is larger than `MAX_FILE_BYTES`.
    """
    with open_root(root) as folder:
        try:
            descriptor = open_beneath(folder, path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise InvalidTask(f"{path} cannot be read: {_reason(error)}.") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidTask(f"{path} is not a regular file.")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InvalidTask(f"{path} is larger than {MAX_FILE_BYTES // 1000:,} kB.")
    return data


def writable_parts(path: str, data: bytes) -> list[str]:
    """The parts of a path at which these contents may be written, whoever writes them.

    Raises:
        InvalidTask: the path leaves the root or lies in `.git`, or the file would be too large.
    """
    parts = parts_of(path)
    if any(part.lower() == ".git" for part in parts):
        raise InvalidTask(f"{path} lies in git's own folder, which is not written to.")
    if len(data) > MAX_FILE_BYTES:
        raise InvalidTask(f"{path} would be larger than {MAX_FILE_BYTES // 1000:,} kB.")
    return parts


def write_beneath(root: Path, path: str, data: bytes, *, replace: bool) -> None:
    """Write a file so that readers see the old or the new contents, never a part.

    Folders are created. A replaced file keeps its mode; a new one gets 0644. Nothing is written in `.git`,
    where a file can become a command that git runs.

    Args:
        root: the folder.
        path: relative path of the file.
        data: its contents.
        replace: whether the file exists and is replaced; otherwise it must not exist.

    Raises:
        InvalidTask: the path leaves the root, lies in `.git`, or the file cannot be written.
    """
    *folders, name = writable_parts(path, data)
    try:
        with open_root(root) as top, _folder_for(top, folders) as folder:
            _place(folder, name, data, replace=replace)
    except FileExistsError as error:
        raise InvalidTask(f"{path} exists already: read it before replacing it.") from error
    except OSError as error:
        raise InvalidTask(f"{path} cannot be written: {_reason(error)}.") from error


@contextmanager
def _folder_for(root: int, folders: list[str]) -> Iterator[int]:
    """The folder beneath the root, created where it is missing."""
    current = os.dup(root)
    try:
        for name in folders:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=current)
            below = _open_folder(current, name)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _place(folder: int, name: str, data: bytes, *, replace: bool) -> None:
    temporary = f".{name[:100]}.{secrets.token_hex(6)}.tmp"
    mode = 0o644
    if replace:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        mode = stat.S_IMODE(status.st_mode)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        if replace:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)  # fails if the name exists
        os.unlink(temporary, dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
