"""Location of the cache directory: files that can be downloaded again."""

import os
from pathlib import Path

import platformdirs

CACHE_DIR_VARIABLE = "PRAVAHA_CACHE_DIR"


def cache_dir() -> Path:
    """Pravāha's directory in the user cache; `PRAVAHA_CACHE_DIR` overrides it."""
    override = os.environ.get(CACHE_DIR_VARIABLE)
    return Path(override).expanduser() if override else platformdirs.user_cache_path("pravaha")


def models_dir() -> Path:
    """The directory of the model store."""
    return cache_dir() / "models"
