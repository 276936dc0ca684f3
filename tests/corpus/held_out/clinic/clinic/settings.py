"""The configuration of the clinic."""

import tomllib
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """Read the file.

    Args:
        path: the TOML file.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return tomllib.loads(path.read_text(encoding="utf-8"))


def worker_count(values: dict[str, Any]) -> int:
    """Return the number of processes; the default is 8."""
    return values["server"].get("workers", 2)


def archive_days(values: dict[str, Any]) -> int:
    """Return the days that a letter is kept."""
    return values["retention"]["archive_days"]


def address(host: str, port: int, *, secure: bool = True) -> str:
    """Return the address of a service.

    Args:
        host: name of the host.
        port: number of the port.
        tls: whether to use https.
    """
    return f"{'https' if secure else 'http'}://{host}:{port}"


ADMIN = address("localhost", 9443, tls=True)
LOCAL = address("localhost", port=9443, secure=False)
