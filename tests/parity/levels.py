"""Dispatch levels in tests: forces a level, and skips tests of levels that the machine lacks."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine import _core

LEVELS = ("amx", "avx512", "avxvnni", "avx2", "portable")

FUSED_LEVELS = LEVELS[:-1]
"""Levels with fused multiply-adds in the same order, which agree bit for bit on quantised weights."""

OBSTACLES = _core.cpu_features()["obstacles"]
"""Level → reason why this process cannot run it."""

each_level = pytest.mark.parametrize("level", LEVELS)


def available(level: str) -> bool:
    """Whether this process can run the level."""
    return level not in OBSTACLES


def require(*levels: str) -> None:
    """Skip the test unless all levels are available."""
    for level in levels:
        if not available(level):
            pytest.skip(f"this machine has no {level}: {OBSTACLES[level]}")


@contextmanager
def forced(level: str) -> Iterator[None]:
    """Force executors loaded within the context to use `level`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRAVAHA_DISPATCH", level)
        yield
