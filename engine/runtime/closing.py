"""Shutdown of an engine: finish its requests and free its memory, at interpreter exit at the latest."""

import atexit
import weakref
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from engine.batch.finish import ABORTED, failed
from engine.batch.sequence import Sequence
from engine.step.pipeline import Pipeline


def close_pipeline(pipeline: Pipeline, live: Iterable[Sequence], error: str | None) -> None:
    """Finish live requests, then free swap tier, store of states and weights. No step runs after this.

    Args:
        pipeline: the pipeline of the requests.
        live: requests that have not finished; the caller delivers their finishes.
        error: the message they fail with; None aborts them.
    """
    for sequence in live:
        pipeline.finish(sequence, ABORTED if error is None else failed(error))
    kept = pipeline.blocks.recurrent or pipeline.blocks.windows
    if kept is not None:
        kept.close()  # first: the lock of the tier's file guards its folder
    tier, pipeline.blocks.tier = pipeline.blocks.tier, None
    if tier is not None:
        tier.close()
    drafts, pipeline.scheduler.model_drafts = pipeline.scheduler.model_drafts, None
    if drafts is not None:
        drafts.close()
    if pipeline.executor is not None:
        pipeline.executor.close()
        pipeline.executor = None


class _HasShutdown(Protocol):
    def shutdown(self) -> None: ...


class ExitHook:
    """Shuts an engine down when the interpreter exits; does not keep the engine alive until then.

    A daemon thread that is inside native code during interpreter finalization can crash the process.
    """

    def __init__(self, engine: _HasShutdown) -> None:
        """Create the hook with a weak reference to the engine."""
        self._call = partial(_shut_down, weakref.ref(engine))

    def arm(self) -> None:
        """Register the hook: interpreter exit waits for the engine from now on."""
        atexit.register(self._call)

    def disarm(self) -> None:
        """Unregister the hook, because the engine was shut down."""
        atexit.unregister(self._call)


def _shut_down(engine: "weakref.ref[_HasShutdown]") -> None:
    alive = engine()
    if alive is not None:
        alive.shutdown()
