"""Runs a module of kernel cases in a process of its own, as Triton's mode is set when it is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def lines_of(module: str, cache: Path, **environ: str) -> list[Any]:
    """The JSON lines that a module of this package prints.

    Args:
        module: its name.
        cache: a folder for compiled kernels.
        environ: environment variables.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"tests.torch_executor.{module}"],
        capture_output=True,
        text=True,
        env=os.environ | {"TRITON_CACHE_DIR": str(cache)} | environ,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
