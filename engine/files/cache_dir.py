"""Where Pravāha keeps what it can fetch again."""

import os
from pathlib import Path

import platformdirs

CACHE_DIR_VARIABLE = "PRAVAHA_CACHE_DIR"


def cache_dir() -> Path:
    """The user's cache folder of Pravāha; `PRAVAHA_CACHE_DIR` overrides it."""
    override = os.environ.get(CACHE_DIR_VARIABLE)
    return Path(override).expanduser() if override else platformdirs.user_cache_path("pravaha")


def models_dir() -> Path:
    """The model store's folder."""
    return cache_dir() / "models"
