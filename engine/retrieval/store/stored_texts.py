"""`StoredTexts`: finds stored vectors by the text that was embedded of their chunk."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from engine.retrieval.store.embedded_text import EMBEDDED_TEXT

_HASH_BYTES = 8


class StoredTexts:
    """The chunks of some documents by their text. Memory: 24 bytes a chunk, however long it is.

    Texts are compared themselves; hashes only find candidates.
    """

    def __init__(
        self, connection: sqlite3.Connection, rows: Iterable[tuple[str, int, int]]
    ) -> None:
        """Hash the texts.

        Args:
            connection: reads texts again.
            rows: text, chunk id and slot of each chunk.
        """
        self._connection = connection
        hashes, chunk_ids, slots = bytearray(), [], []
        for text, chunk_id, slot in rows:
            hashes += _hash(text)
            chunk_ids.append(chunk_id)
            slots.append(slot)
        keys = np.frombuffer(bytes(hashes), np.uint64)
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._chunk_ids = np.array(chunk_ids, np.int64)[order]
        self._slots = np.array(slots, np.int64)[order]

    def find(self, texts: Sequence[str]) -> dict[int, int]:
        """Slots by the index of the text, of those texts that are stored."""
        if not len(self._keys) or not texts:
            return {}
        wanted = np.frombuffer(b"".join(map(_hash, texts)), np.uint64)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        hits = np.flatnonzero(self._keys[at] == wanted)
        stored = self._texts(self._chunk_ids[at[hits]].tolist())
        return {
            int(index): int(self._slots[at[index]])
            for index in hits.tolist()
            if stored.get(int(self._chunk_ids[at[index]])) == texts[index]
        }

    def _texts(self, chunk_ids: list[int]) -> dict[int, str]:
        rows = self._connection.execute(
            f"SELECT id, {EMBEDDED_TEXT} FROM chunk WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(chunk_ids),),
        )
        return dict(rows)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()
