"""Running Python tools over a copy of the workspace's Python files.

The copy lies in a temporary folder, so that neither the project's configuration nor its plugins, which are
code, take part, and so that the tool sees the text that the other detectors saw.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from agents.workspace.source_file import SourceFile


@contextmanager
def copied(files: Sequence[SourceFile]) -> Iterator[Path]:
    """A temporary folder with the files' text at their relative paths."""
    with tempfile.TemporaryDirectory(prefix="pravaha-audit-") as name:
        folder = Path(name)
        for file in files:
            parts = PurePosixPath(file.path).parts
            if ".." in parts or PurePosixPath(file.path).is_absolute():
                continue
            target = folder.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.text, encoding="utf-8", errors="replace")
        yield folder


def run_module(
    module: str, arguments: Sequence[str], *, folder: Path, timeout_s: float
) -> subprocess.CompletedProcess[str] | None:
    """Run `python -I -m module` in a folder; None if it cannot be started or takes too long.

    `-I` keeps the folder off `sys.path`: a file named like a module of the tool is not imported.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MYPY", "RUFF"))
    }
    try:
        return subprocess.run(
            [sys.executable, "-I", "-m", module, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
