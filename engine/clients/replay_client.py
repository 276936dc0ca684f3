"""`ReplayClient`: an `EngineClient` that returns what a recording holds, at the recorded times.

The recording is untrusted: a line that is not of the format is refused with its number.
"""

import bisect
import json
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.api import errors
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.request import TokenBatch
from engine.api.snapshot import BlockMap, EngineSnapshot
from engine.clients.engine_client import EngineClient
from engine.clients.recording_client import IN_ORDER, SINCE, VERSION, updated
from engine.clients.value_codec import CodecError, decode, encode

_LATER: dict[str, Any] = {"reasoning_markers": None, "controls_reasoning": False}
"""Calls that the first recordings do not have, with what is answered then."""


@dataclass(slots=True)
class _Track:
    """Results by time, oldest first."""

    times: list[float] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def add(self, time: float, result: Any) -> None:
        self.times.append(time)
        self.results.append(result)

    def until(self, time: float) -> int:
        """The number of results up to this time."""
        return bisect.bisect_right(self.times, time)


class RecordedLines:
    """A recording, parsed.

    Attributes:
        duration: seconds from its beginning to its last line.
        lines: (line number, seconds, kind, values) of the kinds that `ReplayClient` does not use.

    Raises:
        InvalidRequest: a line is not of the format, or the version is not supported.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.duration = 0.0
        self.lines: list[tuple[int, float, str, list[Any]]] = []
        self.snapshots = _Track()
        self.blocks = _Track()
        self.calls: dict[tuple[str, str], _Track] = defaultdict(_Track)
        self._snapshot: dict[str, Any] = {}
        self._blocks: BlockMap | None = None
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    self._read(number, line)
                except (
                    CodecError, ValueError, TypeError, KeyError, IndexError, RecursionError,
                ) as error:  # fmt: skip
                    raise InvalidRequest(
                        f"Line {number} of the recording is damaged: {error}."
                    ) from error
        if not self.snapshots.times:
            raise InvalidRequest("The recording is empty.")

    @classmethod
    def open(cls, path: Path) -> "RecordedLines":
        """Read a file.

        Raises:
            InvalidRequest: it cannot be read, or as the constructor.
        """
        try:
            with path.open(encoding="utf-8") as file:
                return cls(file)
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{path} is not a recording.") from error

    def _read(self, number: int, line: str) -> None:
        time, kind, *values = json.loads(line)
        if not isinstance(kind, str) or isinstance(time, bool) or not isinstance(time, int | float):
            raise ValueError("it does not begin with a time and a kind")
        time = float(time)
        self.duration = max(self.duration, time)
        if kind == "snapshot":
            self._snapshot = updated(self._snapshot, _object(values[0]))
            self.snapshots.add(time, decode(self._snapshot, EngineSnapshot, "snapshot"))
        elif kind == "blocks":
            self._blocks = _changed_blocks(self._blocks, _object(values[0]))
            self.blocks.add(time, self._blocks)
        elif kind == "call":
            name, given, result = values
            if not _is_known(name):  # of another version, which this one does not ask for
                return
            value = decode(result, _result_type(name), name)
            self.calls[name, json.dumps(given)].add(time, value)
        elif kind == "error":
            name, given, error, text = values
            kind_of_error = getattr(errors, str(error), InvalidRequest)
            self.calls[name, json.dumps(given)].add(time, kind_of_error(str(text)))
        else:
            if kind == "start" and _object(values[0]).get("version") != VERSION:
                raise ValueError(f"version {values[0].get('version')!r:.20} is not {VERSION}")
            self.lines.append((number, time, kind, values))


class ReplayClient:
    """Answers calls from a recording.

    Args:
        recorded: the recording.
        now: returns the seconds since its beginning that are played.
    """

    def __init__(self, recorded: RecordedLines, now: Callable[[], float]) -> None:
        self._recorded = recorded
        self._now = now
        self._taken: dict[tuple[str, str], int] = defaultdict(int)

    def snapshot(self) -> EngineSnapshot:
        """The engine as recorded."""
        track = self._recorded.snapshots
        snapshot: EngineSnapshot = track.results[max(0, track.until(self._now()) - 1)]
        return snapshot

    def blocks(self, since: int) -> BlockMap | None:
        """The KV blocks as recorded, or None if they did not change after epoch `since`."""
        track = self._recorded.blocks
        count = track.until(self._now())
        if not count or track.results[count - 1].epoch <= since:
            return None
        blocks: BlockMap = track.results[count - 1]
        return blocks

    def drain(self, request_id: str) -> TokenBatch | None:
        """The next recorded batch of a request, if its time has come."""
        batch: TokenBatch | None = self._next("drain", json.dumps([request_id]))
        return batch

    def is_drained(self, time: float) -> bool:
        """Whether all batches that were drained in the first `time` seconds of the recording have been."""
        return all(
            self._taken[name, given] >= track.until(time)
            for (name, given), track in self._recorded.calls.items()
            if name == "drain"
        )

    def cancel(self, request_id: str) -> None:
        """Does nothing: the recording has the end of the answer."""

    def on_wake(self, callback: Callable[[], None]) -> None:
        """Does nothing: the replay wakes its reader."""

    def yield_core(self) -> AbstractContextManager[None]:
        """Does nothing: nothing is computed."""
        return nullcontext()

    def close(self) -> None:
        """Does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(EngineClient, name):
            raise AttributeError(name)
        if _is_future(name):
            return partial(self._answer_later, name)
        return partial(self._answer, name)

    def _answer_later(self, name: str, *args: Any, **options: Any) -> "Future[Any]":
        """The answer as a future, which is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(self._answer(name, *args, **options))
        except PravahaError as error:
            future.set_exception(error)
        return future

    def _answer(self, name: str, *args: Any, **options: Any) -> Any:
        if name in IN_ORDER:
            result = self._next(name, "[]", due=False)
            if result is None:
                raise InvalidRequest(
                    "The recording ends here: nothing was asked of the engine after this."
                )
            return result
        if name in SINCE:
            return self._since(name, args[0] if args else options["since"])
        track = self._recorded.calls.get(
            (name, json.dumps(encode([*args, options] if options else [*args])))
        )
        if track is None and name in _LATER:
            return _LATER[name]
        if track is None:
            raise InvalidRequest(f"The recording has no answer to this ({name}).")
        return _raised(track.results[max(0, track.until(self._now()) - 1)])

    def _next(self, name: str, given: str, *, due: bool = True) -> Any:
        """The next result of these calls, or None if there is none (with `due`: none until now)."""
        track = self._recorded.calls.get((name, given))
        index = self._taken[name, given]
        if track is None or index >= (track.until(self._now()) if due else len(track.times)):
            return None
        self._taken[name, given] = index + 1
        return _raised(track.results[index])

    def _since(self, name: str, since: int) -> Any:
        """What a reader that has everything before `since` has not seen."""
        track = self._recorded.calls.get((name, "[]"), _Track())
        found = track.results[: track.until(self._now())]
        join = getattr(_result_type(name), "joined", None)
        if join is not None:
            return join(found, since)
        entries = {one.number: one for batch in found for one in batch if one.number > since}
        return tuple(entries[number] for number in sorted(entries))


def _raised(result: Any) -> Any:
    if isinstance(result, PravahaError):
        raise result
    return result


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("an object is missing")
    return value


def _is_known(name: Any) -> bool:
    """Whether clients have this call."""
    if not isinstance(name, str):
        raise ValueError("a call has no name")
    return not name.startswith("_") and hasattr(EngineClient, name)


@cache
def _result_type(name: str) -> Any:
    declared = typing.get_type_hints(getattr(EngineClient, name))["return"]
    return typing.get_args(declared)[0] if typing.get_origin(declared) is Future else declared


@cache
def _is_future(name: str) -> bool:
    declared = typing.get_type_hints(getattr(EngineClient, name))["return"]
    return typing.get_origin(declared) is Future


def _changed_blocks(old: BlockMap | None, changes: dict[str, Any]) -> BlockMap:
    """The block map after changes from `recording_client.block_changes`."""
    hints = typing.get_type_hints(BlockMap)
    values: dict[str, Any] = {}
    for one in fields(BlockMap):
        change = changes.get(one.name)
        if isinstance(change, dict) and "at" in change:
            if old is None:
                raise ValueError("a change of blocks without a first map")
            at = decode(change["at"], np.ndarray, one.name)
            to = decode(change["to"], np.ndarray, one.name)
            array = getattr(old, one.name).copy()
            array[at] = to
            values[one.name] = array
        elif change is not None:
            values[one.name] = decode(change, hints[one.name], one.name)
    return BlockMap(**values)
