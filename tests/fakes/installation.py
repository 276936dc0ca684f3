"""An installation of its own, for tests that start the real command."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRAVAHA = (sys.executable, "-c", "from app.cli import main; main()")
"""The command, of this checkout."""


def own_installation(folder):
    """The environment in which it uses this checkout, and folders of its own for data and settings."""
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "PRAVAHA_DATA_DIR": str(folder / "data"),
        "PRAVAHA_CONFIG_DIR": str(folder / "config"),
    }
