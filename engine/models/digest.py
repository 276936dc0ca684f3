"""SHA-256 of files, with progress reports."""

import hashlib
from pathlib import Path

from engine.models.progress import FetchProgress, ProgressCallback, ignore_progress

_CHUNK = 1 << 20


def sha256_of(path: Path, *, progress: ProgressCallback = ignore_progress) -> str:
    """The file's SHA-256 in hexadecimal; `progress` is called after every MiB.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    total = path.stat().st_size
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(FetchProgress("verify", path.name, done, total))
    return digest.hexdigest()
