"""`RecordingClient`: passes calls to another `EngineClient` and writes their results to a recording.

What is polled is written only when it changed: of snapshots and block maps the changed fields and elements.
The file has one JSON list per line, `[seconds, kind, …]`; `ReplayClient` reads it.
"""

import dataclasses
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from engine.api.errors import PravahaError
from engine.api.snapshot import BlockMap
from engine.clients.engine_client import EngineClient
from engine.clients.value_codec import encode

VERSION = 1
FLUSH_S = 1.0

IN_ORDER = frozenset({"submit", "fork", "pin"})
"""Methods whose results a replay returns in the order of the calls, whatever their arguments."""
SINCE = frozenset({"blocks", "events", "recent_steps"})
"""Methods that return what is new since their argument."""
_REMEMBERED = 1000
"""Number of other calls whose last results are remembered, to write only different ones."""

NOT_RECORDED = frozenset({"on_wake", "yield_core", "close", "cancel"})
"""Methods without a result that a replay needs."""


class Recording:
    """The file of a recording. Any thread may write: a change of the model runs beside the screen's thread.

    Stops writing when the disk is full or the file fails; `error` is then the reason.

    Args:
        path: the file, which must not exist yet.
        clock: monotonic seconds.

    Raises:
        OSError: the file exists or cannot be created.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.error: OSError | None = None
        self._clock = clock
        self._began = self._flushed = clock()
        self._lock = threading.Lock()
        # Recordings hold what was said: only the user may read them.
        self._file: TextIO | None = path.open("x", encoding="utf-8")
        path.chmod(0o600)

    def write(self, kind: str, *values: Any) -> None:
        """Add a line with the time since the recording began."""
        with self._lock:
            self._write(kind, *values)

    def _write(self, kind: str, *values: Any) -> None:
        if self._file is None:
            return
        now = self._clock()
        line = [round(now - self._began, 4), kind, *values]
        try:
            self._file.write(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n")
            if now - self._flushed >= FLUSH_S:
                self._file.flush()
                self._flushed = now
        except OSError as error:
            self.error = error
            self.close()

    def close(self) -> None:
        """Close the file. Idempotent."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.error = self.error or error


class RecordingClient:
    """An `EngineClient`; the calls that it has are those of the client that it wraps."""

    def __init__(self, client: EngineClient, recording: Recording) -> None:
        self._client = client
        self._recording = recording
        self._snapshot: dict[str, Any] = {}
        self._blocks: BlockMap | None = None
        self._last: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()  # over HTTP, answers are submitted on a thread of their own

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return method if name in NOT_RECORDED else partial(self._call, name, method)

    def _call(self, name: str, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        unkeyed = name in IN_ORDER or name in SINCE
        given = [] if unkeyed else encode([*args, options] if options else [*args])
        try:
            result = method(*args, **options)
        except PravahaError as error:
            self._write_error(name, given, error)
            raise
        if isinstance(result, Future):
            result.add_done_callback(partial(self._write_outcome, name, given))
        elif name == "snapshot":
            self._write_snapshot(encode(result))
        elif name == "blocks":
            self._write_blocks(result)
        elif name in SINCE or name == "drain":
            news = getattr(result, "events", result) if name in SINCE else (result,)
            if result is not None and len(news):
                self._recording.write(
                    "call", name, given if name == "drain" else [], encode(result)
                )
        elif name in IN_ORDER:
            self._recording.write("call", name, given, encode(result))
        else:
            self._write_if_different(name, given, encode(result))
        return result

    def _write_snapshot(self, snapshot: dict[str, Any]) -> None:
        changes = difference(self._snapshot, snapshot)
        self._snapshot = snapshot
        if changes:
            self._recording.write("snapshot", changes)

    def _write_blocks(self, blocks: BlockMap | None) -> None:
        if blocks is not None:
            self._recording.write("blocks", block_changes(self._blocks, blocks))
            self._blocks = blocks

    def _write_if_different(self, name: str, given: Any, result: Any) -> None:
        key = f"{name} {json.dumps(given)}"
        with self._lock:
            if self._last.get(key, _NOTHING) != result:
                self._recording.write("call", name, given, result)
            self._last[key] = result
            self._last.move_to_end(key)
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)

    def _write_outcome(self, name: str, given: Any, future: "Future[Any]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self._write_if_different(name, given, encode(future.result()))
        elif isinstance(error, PravahaError):
            self._write_error(name, given, error)

    def _write_error(self, name: str, given: Any, error: PravahaError) -> None:
        self._recording.write("error", name, given, type(error).__name__, str(error))


_NOTHING = object()


def block_changes(old: BlockMap | None, new: BlockMap) -> dict[str, Any]:
    """The fields of a block map; of arrays as long as before only the changed elements.

    An array is then an object with `at`, the indices of the elements, and `to`, their values.
    """
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(new):
        value, before = getattr(new, field.name), getattr(old, field.name, None)
        if (
            isinstance(value, np.ndarray)
            and isinstance(before, np.ndarray)
            and before.shape == value.shape
        ):
            both_nan = (value != value) & (before != before)
            at = np.flatnonzero((value != before) & ~both_nan).astype(np.uint32)
            changes[field.name] = {"at": encode(at), "to": encode(value[at])}
        else:
            changes[field.name] = encode(value)
    return changes


def difference(old: Any, new: dict[str, Any]) -> dict[str, Any]:
    """The members of `new` that differ from `old`; objects are compared member by member.

    An object that lost a member is given whole, as the only member `=` of another.
    """
    if not isinstance(old, dict):
        return new
    changes: dict[str, Any] = {}
    for name, value in new.items():
        before = old.get(name)
        if value == before and name in old:
            continue
        if not (isinstance(value, dict) and isinstance(before, dict)):
            changes[name] = value
        elif set(before) <= set(value):
            changes[name] = difference(before, value)
        else:
            changes[name] = {"=": value}
    return changes


def updated(old: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """The object with `changes` from `difference` applied."""
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in changes.items():
        before = result.get(name)
        if not (isinstance(value, dict) and isinstance(before, dict)):
            result[name] = value
        elif set(value) == {"="}:
            result[name] = value["="]
        else:
            result[name] = updated(before, value)
    return result
