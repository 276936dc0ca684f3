"""`StateSaver`: copies recurrent states from their slots to the state store and back.

What is stored are checkpoints: while the engine idles, the most valuable first; when they are dropped for
others; and at shutdown. A request begins with the longest stored state of its tokens that the KV of pool and
swap tier reaches.

Engine's thread only, except `find`.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import ExecutorError
from engine.memory.staging_writer import Buffer
from engine.memory.state_checkpoints import Checkpoint, StateCheckpoints
from engine.memory.state_key import StateKeys
from engine.memory.state_store import StateStore

_log = logging.getLogger(__name__)

FLUSH_S = 10.0
"""Time limit for storing states at shutdown, in seconds."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state of the state store, after `tokens` tokens."""

    key: bytes
    tokens: int


class StateSaver:
    """Saves the states, or windows, of one executor in one store.

    Attributes:
        store: the store.
        keys: computes the keys under which states are stored.
    """

    def __init__(self, store: StateStore, read: Callable[[Checkpoint, Buffer], None]) -> None:
        """Save checkpoints in a store.

        Args:
            store: the store.
            read: copies a checkpoint into a buffer, [state_bytes], or raises `ExecutorError`.
        """
        self.store = store
        self.keys = StateKeys()
        self._read = read

    def find(
        self, identity: NDArray[np.int32], cache_salt: bytes, *, above: int, most: int
    ) -> StoredState | None:
        """The longest stored state of a request after more than `above` and at most `most` tokens.

        Any thread.

        Args:
            identity: identity tokens of the request.
            cache_salt: digest of its cache salt.
            above: tokens of the best state elsewhere.
            most: tokens whose KV is there.
        """
        lengths = [length for length in self.store.lengths() if above < length <= most]
        for length, key in self.keys.of_prefixes(identity, cache_salt, sorted(lengths)):
            if self.store.has(key):
                return StoredState(key, length)
        return None

    def load(self, key: bytes, write: Callable[[Buffer], None]) -> bool:
        """Copy a stored state to the executor; False if it is gone or damaged.

        Args:
            key: of the state.
            write: copies its bytes, [state_bytes], or raises `ExecutorError`.
        """
        data = self.store.get(key)
        if data is None:
            return False
        try:
            write(data)
        except ExecutorError as error:
            _log.warning("A recurrent state or window could not be restored: %s", error)
            return False
        return True

    def save_idle(self, checkpoints: StateCheckpoints) -> bool:
        """Store the most valuable checkpoint that is not stored; False if none is left to store."""
        saved = sum(one.saved for one in checkpoints)
        unsaved = [one for one in checkpoints if not one.saved and one.key]
        if not unsaved or saved >= self.store.capacity:
            return False
        return self._save(max(unsaved, key=lambda one: one.priority), wait=True)

    def save_victim(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint that is dropped, except one between two others: they are too many."""
        if checkpoint.num_children != 1 and not checkpoint.saved and checkpoint.key:
            self._save(checkpoint, wait=False)

    def close(self, checkpoints: StateCheckpoints, seconds: float) -> None:
        """Store what is not stored yet for at most `seconds`, and close the store."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.save_idle(checkpoints):
            pass
        self.store.close()

    def _save(self, checkpoint: Checkpoint, *, wait: bool) -> bool:
        buffer = self.store.buffer(wait=wait)
        if buffer is None:
            return False
        try:
            self._read(checkpoint, buffer)
        except ExecutorError as error:
            _log.warning("A recurrent state or window could not be stored: %s", error)
            self.store.return_buffer(buffer)
            return False
        checkpoint.saved = True
        self.store.put(checkpoint.key, checkpoint.tokens, buffer)
        return True
