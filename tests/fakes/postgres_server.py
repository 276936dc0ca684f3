"""A private PostgreSQL server with pgvector, from the binaries of the system's packages."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_VERSIONS = Path("/usr/lib/postgresql")
_USER = "pravaha_test"


def missing() -> str | None:
    """Why there can be none; None if there can."""
    binaries = _binaries()
    if binaries is None:
        return "PostgreSQL is not installed"
    share = subprocess.run(
        [binaries / "pg_config", "--sharedir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    version = binaries.parent.name
    folders = [Path(share), Path("/usr/share/postgresql") / version]
    if not any((one / "extension" / "vector.control").exists() for one in folders):
        return "pgvector is not installed"
    if os.getuid() == 0 and _other_user() is None:
        return "PostgreSQL does not run as root, and there is no other user"
    return None


@contextmanager
def postgres_server() -> Iterator[tuple[str, Path]]:
    """The URL of an empty database, and the folder with the server's files; it has no network port."""
    binaries = _binaries()
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="pravaha-postgres-", dir="/tmp"))
    user = _other_user() if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    options = (
        {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    )
    data = folder / "data"
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True, capture_output=True, cwd=folder, **options,
        )  # fmt: skip
        control = [binaries / "pg_ctl", "-D", data, "-w"]
        settings = f"-k {folder} -c listen_addresses= -c fsync=off"
        subprocess.run(
            [*control, "-o", settings, "-l", folder / "log", "start"],
            check=True, stdout=subprocess.DEVNULL, cwd=folder, **options,
        )  # fmt: skip
        try:
            yield f"postgresql:///postgres?host={folder}&user={_USER}", data
        finally:
            subprocess.run(
                [*control, "-m", "immediate", "stop"],
                check=True, stdout=subprocess.DEVNULL, cwd=folder, **options,
            )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path | None:
    """The folder of the newest version's programs."""
    versions = [one for one in _VERSIONS.glob("*/bin") if (one / "initdb").exists()]
    return max(versions, key=lambda one: float(one.parent.name), default=None)


def _other_user() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None
