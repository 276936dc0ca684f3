"""Reading an answer from a thread: batch after batch, without looking when there is nothing."""

import threading
from collections.abc import Iterator

from engine.api.request import TokenBatch
from engine.clients.engine_client import EngineClient

_WAKE_S = 0.5
"""Looks at least so often, whatever woke it or did not."""


class BatchReader:
    """Reads requests of one client to their ends, one at a time."""

    def __init__(self, client: EngineClient) -> None:
        """Ask `client` for wake-ups; they cannot be given back, so one reader serves many requests."""
        self._client = client
        self._wake = threading.Event()
        client.on_wake(self._wake.set)

    def read(self, request_id: str) -> Iterator[TokenBatch]:
        """A request's batches as they come; the last one has `finish_reason`."""
        while True:
            batch = self._client.drain(request_id)
            if batch is None:
                self._wake.wait(_WAKE_S)
                self._wake.clear()
                continue
            yield batch
            if batch.finish_reason is not None:
                return
