"""`removing_new_protected`: a command leaves no new `.git` or `.pravaha` at the top of a folder.

Existing ones are read-only. A new `.git` could name programs that the user's next git command executes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agents.sandbox.policy import PROTECTED
from agents.sandbox.scratch import remove_tree


@contextmanager
def removing_new_protected(writable: Sequence[Path]) -> Iterator[None]:
    """Remove what appears under a protected name while the block runs."""
    absent = [folder / name for folder in writable for name in PROTECTED]
    absent = [path for path in absent if not (path.exists() or path.is_symlink())]
    try:
        yield
    finally:
        for path in absent:
            if path.is_symlink() or path.is_file():
                path.unlink(missing_ok=True)
            elif path.exists():
                remove_tree(path)
