"""`replace_file`: writes a whole file so that readers see the old or the new contents."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file beside the old one, on the disk before it takes its place; a failure leaves the old one.

    Args:
        path: the file, which need not exist; its folder does. A symbolic link is replaced, not followed.
        data: its contents.
        mode: its permissions, whatever the umask.

    Raises:
        OSError: it cannot be written.
    """
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
