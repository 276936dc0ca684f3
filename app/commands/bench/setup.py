"""Setup and teardown that all benchmarks of an engine share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

SHORT_S = 75.0
"""Predictions up to this are a minute."""

if TYPE_CHECKING:
    from app.settings.settings import Settings
    from engine.api.config import EngineConfig
    from engine.runtime.engine import AsyncPravahaEngine


def configuration(settings: "Settings") -> "EngineConfig":
    """The engine's configuration from the settings; fetches the demo model if it is missing.

    The swap tier is off, because it would contain blocks of earlier runs, and the weight cache, because it
    would be written meanwhile; that of a model with experts is written before the model is ready.

    Raises:
        PravahaError: the model is unusable.
    """
    from app.commands.fetch_bar import fetch_bar
    from app.runtime.opening import engine_config
    from engine.executors.open_model import open_model
    from engine.models.spec import ModelSpec

    with fetch_bar() as progress:
        config = engine_config(settings, progress)
    spec = open_model(config.model, config).spec
    if not (isinstance(spec, ModelSpec) and spec.has_experts):
        config = replace(config, weight_cache_bytes=0)
    return replace(config, swap_bytes=0)


@contextmanager
def running_engine(config: "EngineConfig") -> "Iterator[AsyncPravahaEngine]":
    """A ready engine for the benchmark alone, shut down at the end.

    Its calibration steps, which an engine runs when idle, are disabled: they would affect the results.

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


def show_measuring(what: str, seconds_left: float = 0.0) -> None:
    """Show on one line of a terminal what is being measured, and how long it takes if that is long."""
    if sys.stderr.isatty():
        left = f", {in_minutes(seconds_left)} left" if seconds_left > SHORT_S else ""
        print(f"\r\033[Kmeasuring {what} …{left}", end="", file=sys.stderr, flush=True)


def show_estimate(seconds: float, runs: int | None = None) -> None:
    """Say how long a benchmark takes, if it is more than the minute that is promised."""
    if seconds <= SHORT_S:
        return
    clear_measuring()
    each = "" if runs is None else f", with {runs} run{'s' if runs > 1 else ''} of each column"
    print(f"pravaha: this takes {in_minutes(seconds)}{each}; Ctrl+C ends it.", file=sys.stderr)


def in_minutes(seconds: float) -> str:
    """A duration in whole minutes."""
    minutes = max(1, round(seconds / 60))
    return f"about {minutes} minute{'s' if minutes > 1 else ''}"


def clear_measuring() -> None:
    """Clear that line before a result is printed."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
