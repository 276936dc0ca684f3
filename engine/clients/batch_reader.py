"""`BatchReader`: blocks until the next token batch of a request arrives, without polling."""

import threading
from collections.abc import Iterator

from engine.api.request import TokenBatch
from engine.clients.engine_client import EngineClient

_WAKE_S = 0.5
"""Maximum time between two looks at the mailbox, in case a wake-up is missed."""


class BatchReader:
    """Reads requests of one client until they finish, one at a time."""

    def __init__(self, client: EngineClient) -> None:
        """Register with `client` for wake-ups. They cannot be unregistered, so reuse the reader."""
        self._client = client
        self._wake = threading.Event()
        client.on_wake(self._wake.set)

    def read(self, request_id: str) -> Iterator[TokenBatch]:
        """A request's batches as they arrive; the final one has `finish_reason`."""
        while True:
            batch = self._client.drain(request_id)
            if batch is None:
                self.wait(_WAKE_S)
                continue
            yield batch
            if batch.finish_reason is not None:
                return

    def wait(self, seconds: float) -> None:
        """Wait for news of the engine, at most so long."""
        self._wake.wait(seconds)
        self._wake.clear()
