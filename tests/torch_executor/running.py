"""An engine that runs a tiny checkpoint, as a program starts it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.runtime.engine import AsyncPravahaEngine
from tests.torch_executor.loaded import torch_config

TIMEOUT_S = 60


@contextmanager
def running_engine(directory: Path, **settings: Any) -> Iterator[AsyncPravahaEngine]:
    """The engine, which has finished all its requests and freed their blocks in the end."""
    engine = AsyncPravahaEngine(torch_config(directory, executor="auto", **settings))
    engine.start()
    try:
        engine.wait_ready(TIMEOUT_S)
        yield engine
        assert engine.wait_drained(TIMEOUT_S)
        assert engine.snapshot().blocks.active == 0
    finally:
        engine.shutdown()
