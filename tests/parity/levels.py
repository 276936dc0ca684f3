"""Dispatch levels in tests: each can be forced; tests of missing levels are skipped by name."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine import _core

LEVELS = ("amx", "avx512", "avx2", "portable")

FUSED_LEVELS = LEVELS[:-1]
"""Levels with fused multiply-add in the same order: they agree bit for bit on quantised weights."""

OBSTACLES = _core.cpu_features()["obstacles"]
"""Level to the reason why this process cannot run it."""

each_level = pytest.mark.parametrize("level", LEVELS)


def available(level: str) -> bool:
    """Whether this process can run the level."""
    return level not in OBSTACLES


def require(*levels: str) -> None:
    """Skip the test unless this process can run every level."""
    for level in levels:
        if not available(level):
            pytest.skip(f"this machine has no {level}: {OBSTACLES[level]}")


@contextmanager
def forced(level: str) -> Iterator[None]:
    """Executors loaded inside the context run on `level`, whatever their configuration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRAVAHA_DISPATCH", level)
        yield
