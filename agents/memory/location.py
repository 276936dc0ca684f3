"""Where the memory's database lies by default."""

import os
from pathlib import Path

import platformdirs

FILE_NAME = "memory.db"
DATA_DIR_VARIABLE = "PRAVAHA_DATA_DIR"


def memory_path() -> Path:
    """`memory.db` in the user's data folder; `PRAVAHA_DATA_DIR` names another folder."""
    override = os.environ.get(DATA_DIR_VARIABLE)
    folder = Path(override).expanduser() if override else platformdirs.user_data_path("pravaha")
    return folder / FILE_NAME
