"""Dispatch levels in tests: forced one by one, and skipped by name where this machine has them not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine import _core

LEVELS = ("amx", "avx512", "avx2", "portable")

FUSED_LEVELS = LEVELS[:-1]
"""Those that fuse multiply-adds, all in the same order, and so agree bit for bit on quantised weights."""

OBSTACLES = _core.cpu_features()["obstacles"]
"""Level to why this process cannot run it."""

each_level = pytest.mark.parametrize("level", LEVELS)


def available(level: str) -> bool:
    """Whether this process can run the level."""
    return level not in OBSTACLES


def require(*levels: str) -> None:
    """Skip the test unless every level is there."""
    for level in levels:
        if not available(level):
            pytest.skip(f"this machine has no {level}: {OBSTACLES[level]}")


@contextmanager
def forced(level: str) -> Iterator[None]:
    """Have what is loaded meanwhile run on `level`, whatever its configuration says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRAVAHA_DISPATCH", level)
        yield
