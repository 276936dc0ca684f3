"""`StateStore`: keeps recurrent states outside the pool, in files or in main memory.

The counterpart of the swap tier for states: an entry is the state after some tokens, found by the key of salt
and tokens (`engine.memory.state_key`). One file holds one state, in a folder beside the swap file of the
model, whose lock guards it: states are large and few, so the file system is the index. A file's name has the
key and the number of tokens; its header has a checksum. A file that is damaged, cut off or of another size is
removed when it is read, and costs no more than computing the tokens. The least recently used states are
removed for others.

The engine's thread copies a state into a staging buffer; checksum and file are written on the thread of a
`StagingWriter`. `lengths`, `has` and `len` may be called by any thread, all else by the engine's.
"""

import hashlib
import logging
import os
import threading
from collections import Counter, OrderedDict
from functools import partial
from pathlib import Path

import numpy as np

from engine.memory.staging_writer import Buffer, StagingWriter

_log = logging.getLogger(__name__)

SUFFIX = ".state"
BUFFERS = 2
_MAGIC = b"PRAVAHA-STATE-1\n"
_CHECKSUM_BYTES = 32


class StateStore:
    """The stored states of one model.

    Attributes:
        capacity: maximum number of states.
        num_damaged: states whose bytes were found damaged.
    """

    def __init__(
        self, folder: Path | None, *, state_bytes: int, capacity_bytes: int, threaded: bool = True
    ) -> None:
        """Open the store in a folder, or create one in memory.

        Args:
            folder: made if it does not exist; the caller holds the lock of the swap file beside it.
            state_bytes: bytes of a state.
            capacity_bytes: bound of all of them; at least one is kept.
            threaded: write on a separate thread; False for deterministic tests.

        Raises:
            OSError: the folder cannot be used.
        """
        self.capacity = max(1, capacity_bytes // (state_bytes + len(_MAGIC) + _CHECKSUM_BYTES))
        self.num_damaged = 0
        self._folder = folder
        self._state_bytes = state_bytes
        self._lock = threading.Lock()
        # Key → its tokens and, in memory, its bytes; the most recently used one last.
        self._entries: OrderedDict[bytes, tuple[int, bytes]] = OrderedDict()
        self._lengths: Counter[int] = Counter()
        self._writer = StagingWriter(
            (state_bytes,), buffers=BUFFERS, name="pravaha-states", threaded=threaded
        )
        if folder is not None:
            self._read_names(folder)

    def _read_names(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = []
        for path in folder.iterdir():
            name = _parse(path.name)
            if name is None:  # of a write that was cut off, or not ours
                if path.name.endswith((".part", SUFFIX)):
                    path.unlink(missing_ok=True)
                continue
            found.append((path.stat().st_mtime_ns, *name))
        for _, key, tokens in sorted(found):
            self._entries[key] = tokens, b""
            self._lengths[tokens] += 1
        self._make_room(0)

    def __len__(self) -> int:
        return len(self._entries)

    def lengths(self) -> list[int]:
        """The numbers of tokens after which there is a state. Any thread."""
        with self._lock:
            return list(self._lengths)

    def has(self, key: bytes) -> bool:
        """Whether there is a state. Any thread."""
        return key in self._entries

    def get(self, key: bytes) -> Buffer | None:
        """A state's bytes; None if there is none or they are damaged. It becomes the most recently used."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
        tokens, stored = entry
        if self._folder is None:
            return np.frombuffer(stored, np.uint8)
        path = self._folder / _name(key, tokens)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError as error:
            _log.warning("The state file %s cannot be read: %s.", path, error)
            content = b""
        data = memoryview(content)[len(_MAGIC) + _CHECKSUM_BYTES :]
        if len(data) != self._state_bytes or content[: -len(data)] != _header(data):
            self.num_damaged += 1
            with self._lock:
                self._remove(key)
            return None
        return np.frombuffer(data, np.uint8)

    def buffer(self, *, wait: bool) -> Buffer | None:
        """A free staging buffer, [state_bytes]; None if there is none and `wait` is False."""
        return self._writer.buffer(wait=wait)

    def return_buffer(self, buffer: Buffer) -> None:
        """Return a buffer without writing it."""
        self._writer.return_buffer(buffer)

    def put(self, key: bytes, tokens: int, buffer: Buffer) -> None:
        """Store the state in a buffer, which the caller must not use any more."""
        self._writer.submit(buffer, partial(self._write, key, tokens, buffer))

    def close(self) -> None:
        """Finish the pending writes and stop the thread."""
        self._writer.close()

    def _write(self, key: bytes, tokens: int, buffer: Buffer) -> None:
        try:
            with self._lock:
                if key in self._entries:
                    self._entries.move_to_end(key)
                    return
                self._make_room(1)
            stored = b""
            if self._folder is None:
                stored = buffer.tobytes()
            else:
                path = self._folder / _name(key, tokens)
                part = path.with_suffix(".part")
                with open(part, "wb", opener=_private) as file:
                    file.write(_header(buffer.data))
                    file.write(buffer.data)
                part.replace(path)
            with self._lock:
                self._entries[key] = tokens, stored
                self._lengths[tokens] += 1
        except OSError as error:  # its tokens can be computed again
            _log.warning("A recurrent state could not be stored: %s.", error)

    def _make_room(self, count: int) -> None:
        """Remove the least recently used states until `count` more fit."""
        while self._entries and len(self._entries) + count > self.capacity:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: bytes) -> None:
        tokens, _ = self._entries.pop(key)
        self._lengths[tokens] -= 1
        if not self._lengths[tokens]:
            del self._lengths[tokens]
        if self._folder is not None:
            try:
                (self._folder / _name(key, tokens)).unlink(missing_ok=True)
            except OSError as error:
                _log.warning("A state file cannot be removed: %s.", error)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _header(data: memoryview) -> bytes:
    """Magic and checksum of a state's bytes."""
    return _MAGIC + hashlib.blake2b(data, digest_size=_CHECKSUM_BYTES).digest()


def _name(key: bytes, tokens: int) -> str:
    return f"{key.hex()}-{tokens}{SUFFIX}"


def _parse(name: str) -> tuple[bytes, int] | None:
    """Key and tokens of a file's name; None if it is no state's."""
    key, _, tokens = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not tokens.isascii() or not tokens.isdecimal():
        return None
    try:
        parsed = bytes.fromhex(key)
    except ValueError:
        return None
    count = int(tokens)
    return (parsed, count) if _name(parsed, count) == name else None
