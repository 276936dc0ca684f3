"""What every benchmark of an engine begins and ends with."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings.settings import Settings
    from engine.api.config import EngineConfig
    from engine.runtime.engine import AsyncPravahaEngine


def configuration(settings: "Settings") -> "EngineConfig":
    """The engine that the settings ask for; fetches the demo model if it is missing.

    What an earlier run swapped out would be found by this one, so the swap tier is off.

    Raises:
        PravahaError: the model is unusable.
    """
    from app.commands.fetch_bar import fetch_bar
    from app.runtime.opening import engine_config

    with fetch_bar() as progress:
        return replace(engine_config(settings, progress), swap_bytes=0)


@contextmanager
def running_engine(config: "EngineConfig") -> "Iterator[AsyncPravahaEngine]":
    """A ready engine that serves nobody else, shut down at the end.

    Idle engines calibrate themselves by dummy steps; this one does not, for they would run beside
    what is measured.

    Raises:
        PravahaError: it could not start.
    """
    from engine.runtime.engine import AsyncPravahaEngine

    engine = AsyncPravahaEngine(config, probes=())
    engine.start()
    try:
        engine.wait_ready(timeout=None)
        yield engine
    finally:
        engine.shutdown()


def say_measuring(what: str) -> None:
    """Show on one line of a terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"\r\033[Kmeasuring {what} …", end="", file=sys.stderr, flush=True)


def clear_measuring() -> None:
    """Take that line away, before a result is printed."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
