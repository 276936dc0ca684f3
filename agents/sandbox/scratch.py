"""`scratch_folder`: a private folder of a command, removed afterwards whatever was left in it."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder(prefix: str = "pravaha-sandbox-") -> Iterator[Path]:
    """A new folder that only this user can open.

    `tempfile.TemporaryDirectory` is not used: before Python 3.11.8 its clean-up follows symbolic links when
    it repairs modes, so a command could have the modes of other files changed.
    """
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix)))
    try:
        yield folder
    finally:
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder whose processes have ended. Links are not followed; what cannot be removed stays."""
    _open_up(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _open_up(folder: Path) -> None:
    """Make all folders below writable again."""
    folders = [str(folder)]
    while folders:
        one = folders.pop()
        try:
            if stat.S_ISDIR(os.lstat(one).st_mode):
                os.chmod(one, 0o700)
                with os.scandir(one) as entries:
                    folders += [each.path for each in entries if each.is_dir(follow_symlinks=False)]
        except OSError:
            continue
