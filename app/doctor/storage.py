"""Folders, configuration files and SQLite."""

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from app.doctor.facts import Fact, Section
from app.settings.settings import Settings
from app.settings.sources import toml_files
from app.text.byte_size import format_size


def storage(settings: Settings, environ: Mapping[str, str]) -> Section:
    """Facts about folders, configuration files and SQLite."""
    files = [str(path) for path in toml_files(environ)]
    return Section(
        "storage",
        "Storage",
        (
            _folder("data_dir", "conversations", settings.data_dir),
            _folder("cache_dir", "models, packed weights, swap", settings.cache_dir),
            _folder("config_dir", "configuration", settings.config_dir),
            _swap(settings),
            _weight_cache(settings),
            Fact("config_files", "pravaha.toml", files, ", ".join(files) or "none"),
            Fact("sqlite", "SQLite", sqlite3.sqlite_version, sqlite3.sqlite_version),
            _search(),
        ),
    )


def _swap(settings: Settings) -> Fact:
    """The limit of the swap tier, and the current size of its files."""
    if not settings.swap_limit:
        return Fact("swap_bytes", "KV swap tier", 0, "none")
    found = settings.swap.is_dir()
    files = [*settings.swap.glob("*.swap"), *settings.swap.glob("*.states/*")] if found else []
    used = sum(path.stat().st_blocks * 512 for path in files)
    text = f"{format_size(used)} used; at most {format_size(settings.swap_limit)} a model"
    return Fact("swap_bytes", "KV swap tier", settings.swap_limit, text)


def _weight_cache(settings: Settings) -> Fact:
    """The limit of the weight cache, and the files in it."""
    from engine.executors.weight_cache import WeightCache

    limit = settings.weight_cache_bytes
    entries = WeightCache(settings.weight_cache, limit).entries()
    used = format_size(sum(entry.size for entry in entries))
    bound = f"at most {format_size(limit)}" if limit else "off"
    text = f"{used} in {len(entries)} files; {bound}"
    if entries:
        text += "; `pravaha models clear-cache` removes them"
    return Fact("weight_cache_bytes", "packed weights", limit, text)


def _folder(key: str, label: str, path: Path) -> Fact:
    # A missing folder is created in its nearest existing ancestor.
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return Fact(key, label, str(path), str(path) if nearest == path else f"{path} (not yet)")
    advice = f"make it writable, or set PRAVAHA_{key.upper()} to another folder."
    return Fact(key, label, str(path), f"{path}, which can't be written to", "problem", advice)


def _search() -> Fact:
    """Whether SQLite can index conversations."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'trigram')")
    except sqlite3.Error as error:
        advice = "use a Python whose SQLite is 3.34 or newer, built with FTS5."
        return Fact("search", "text search", False, str(error), "problem", advice)
    finally:
        connection.close()
    return Fact("search", "text search", True, "FTS5 with trigrams")
