"""The end of an engine: its requests ended, its memory freed, on the interpreter's exit at the latest."""

import atexit
import weakref
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from engine.batch.finish import ABORTED, failed
from engine.batch.sequence import Sequence
from engine.step.pipeline import Pipeline


def close_pipeline(pipeline: Pipeline, live: Iterable[Sequence], error: str | None) -> None:
    """End what is live, then free the swap tier and the weights. No step runs after this.

    Args:
        pipeline: what ran, or was to run, the requests.
        live: requests that have not ended; their ends are not announced yet when this returns.
        error: the sentence they end with; None aborts them.
    """
    for sequence in live:
        pipeline.finish(sequence, ABORTED if error is None else failed(error))
    tier, pipeline.blocks.tier = pipeline.blocks.tier, None
    if tier is not None:
        tier.close()
    if pipeline.executor is not None:
        pipeline.executor.close()
        pipeline.executor = None


class _HasShutdown(Protocol):
    def shutdown(self) -> None: ...


class ExitHook:
    """Shuts an engine down when the interpreter exits, and keeps it from nothing until then.

    A daemon thread that is inside native code while the interpreter goes away can crash it.
    """

    def __init__(self, engine: _HasShutdown) -> None:
        """Prepare the hook; the engine is held weakly."""
        self._call = partial(_shut_down, weakref.ref(engine))

    def arm(self) -> None:
        """From now on the exit waits for the engine."""
        atexit.register(self._call)

    def disarm(self) -> None:
        """The engine was shut down."""
        atexit.unregister(self._call)


def _shut_down(engine: "weakref.ref[_HasShutdown]") -> None:
    alive = engine()
    if alive is not None:
        alive.shutdown()
