"""Runs candidates' code and reports what their calls returned. A script of its own, run in the sandbox.

    python probe.py ORDER RESULT

ORDER is a JSON file with `sources` (texts of modules), `module` (the name that they get), `path` (folders for
imports), `calls` and `limits`; RESULT is written. Each source runs in a process of its own that is forked
here, so that one start of an interpreter serves all. A call is `setup` (statements), `expression`,
`expected` (an expression, or null) and `after` (an expression evaluated afterwards, or null). Everything that
code can do is an outcome: a value, printed text, an exception, too much time or memory, the end of the
process.

It imports the standard library alone: the interpreter may be that of another project.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import re
import resource
import select
import signal
import sys
import time
import traceback
import types
from typing import Any, Callable, Iterator, List, Optional, Tuple

Json = Any
Encoded = List[Any]
"""The kind of a value, and its text or members."""
MAX_NODES = 4000
MAX_TEXT = 4000
MAX_DEPTH = 30
MAX_ITEMS = 400
MAX_PRINTED = 20_000
MAX_HUNG = 3
"""Calls of one source that may have to be killed; the rest then counts as too slow, too."""
FILE = "<candidate>"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class TooSlow(BaseException):
    """The time of a call is over. Not an `Exception`, which code that is called may catch."""


class Printed(io.TextIOBase):
    """Standard output of a call, with a bound."""

    def __init__(self) -> None:
        self._parts: List[str] = []
        self._size = 0

    def writable(self) -> bool:
        """As of any output."""
        return True

    def write(self, text: str) -> int:
        """Keep the beginning."""
        if self._size < MAX_PRINTED:
            self._parts.append(text[: MAX_PRINTED - self._size])
        self._size += len(text)
        return len(text)

    def text(self) -> str:
        """What was written."""
        return "".join(self._parts)


class Encoder:
    """Makes of one value JSON that can be compared, such as `["int", "3"]`. Sets and keys are sorted."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def encode(self, value: Any, depth: int = 0) -> Encoded:
        """The value; parts beyond the bounds are `["cut", ""]`."""
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            return ["cut", ""]
        kind = type(value)
        if value is None or kind in (bool, complex):
            return [kind.__name__, repr(value)]
        if kind is int:
            return ["int", repr(value) if value.bit_length() < 10_000 else hex(value)[:MAX_TEXT]]
        if kind is float:
            return ["float", repr(value)]
        if isinstance(value, str):
            return ["str", _bounded(str(value))]
        if isinstance(value, (bytes, bytearray)):
            return ["bytes", _bounded(bytes(value).hex())]
        if isinstance(value, range):
            return ["range", repr(value)]
        return self._container(value, kind, depth)

    def _container(self, value: Any, kind: type, depth: int) -> Encoded:
        if isinstance(value, (list, tuple)):
            name = "list" if isinstance(value, list) else "tuple"
            return [name, [self.encode(one, depth + 1) for one in value]]
        if isinstance(value, (set, frozenset)):
            return ["set", sorted((self.encode(one, depth + 1) for one in value), key=repr)]
        if isinstance(value, dict):
            pairs = [
                [self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()
            ]
            return ["dict", sorted(pairs, key=repr)]
        if hasattr(value, "__next__"):
            items = []
            for one in value:
                items.append(self.encode(one, depth + 1))
                if len(items) >= MAX_ITEMS:
                    break
            return ["iterator", items]
        if isinstance(value, type) or callable(value):
            return ["callable", getattr(value, "__qualname__", kind.__name__)]
        members = getattr(value, "__dict__", None)
        if getattr(kind, "__repr__", None) is object.__repr__ and isinstance(members, dict):
            return ["object", [kind.__name__, self.encode(members, depth + 1)]]
        return ["repr", [kind.__name__, _bounded(_ADDRESS.sub("", repr(value)))]]


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…{len(text)} {hash(text)}"


def load(source: str, order: Json) -> types.ModuleType:
    """The namespace of a source as a module."""
    module = types.ModuleType(order["module"])
    module.__file__ = FILE
    module.__package__ = order["module"].rpartition(".")[0]
    sys.modules[order["module"]] = module
    exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)
    return module


def failure(error: BaseException) -> Json:
    """An exception as an outcome, with the last line of the candidate that it passed."""
    line = 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == FILE:
            line = frame.lineno or 0
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line = error.lineno or 0
    message = ""
    with contextlib.suppress(Exception):
        message = _bounded(_ADDRESS.sub("", str(error)))
    return {"error": type(error).__name__, "message": message[:500], "line": line}


def call(one: Json, module: types.ModuleType) -> Json:
    """The outcome of one call."""
    random.seed(0)
    printed = Printed()
    space = dict(module.__dict__)
    outcome: Json = {}
    real = sys.stdout
    sys.stdout = printed
    try:
        exec(compile(one["setup"], "<setup>", "exec", dont_inherit=True), space)
        value = eval(compile(one["expression"], "<call>", "eval", dont_inherit=True), space)
        outcome["value"] = Encoder().encode(value)
        outcome["shown"] = "" if value is None else _bounded(repr(value))
        if one.get("after") is not None:
            outcome["after"] = Encoder().encode(eval(one["after"], space))
        if one.get("expected") is not None:
            expected = eval(one["expected"], space)
            outcome["expected"] = Encoder().encode(expected)
    finally:
        sys.stdout = real
        outcome["printed"] = printed.text()
    return outcome


def guarded(function: Callable[[], Json], seconds: float) -> Json:
    """What a function returns, or its failure; it is stopped after so many seconds of processor time."""

    def stop(number: int, frame: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    # It fires again and again: code that catches everything would go on after the first time.
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.02)
    try:
        result = function()
    except TooSlow:
        result = {"error": "TooSlow", "message": f"no result after {seconds:g} s", "line": 0}
    except BaseException as error:
        result = failure(error)
    finally:
        while True:
            try:
                signal.setitimer(signal.ITIMER_PROF, 0)
                break
            except TooSlow:
                continue
    return result


def work(source: str, order: Json, first: int, pipe: int) -> None:
    """In a process of its own: load a source and report the calls from number `first` on, a line each."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    limits = order["limits"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (limits["memory"], limits["memory"]))
    sys.path[:0] = order["path"]
    modules: List[types.ModuleType] = []

    def loading() -> Json:
        modules.append(load(source, order))
        return {}

    loaded = guarded(loading, limits["load"])
    tell(pipe, {"loaded": loaded})
    if not modules:
        return
    for number in range(first, len(order["calls"])):
        one = order["calls"][number]
        outcome = guarded(functools.partial(call, one, modules[0]), limits["call"])
        tell(pipe, {"call": number, "outcome": outcome})


def tell(pipe: int, message: Json) -> None:
    """Write a line to the pipe."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def follow(source: str, order: Json) -> Json:
    """The outcomes of one source; a call that cannot be interrupted is killed, and the next ones go on."""
    calls = order["calls"]
    slow = {"error": "TooSlow", "message": "the call had to be killed", "line": 0}
    outcomes: List[Json] = [None] * len(calls)
    loaded: Json = None
    first = hung = 0
    while True:
        process, pipe = start(source, order, first)
        silent = False
        for message in messages(pipe, order["limits"]):
            if message is None:
                silent = True
                break
            if "loaded" in message:
                loaded = message["loaded"]
            else:
                outcomes[message["call"]] = message["outcome"]
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.close(pipe)
        os.waitpid(process, 0)
        if loaded is None:
            loaded = (
                slow if silent else {"error": "Ended", "message": "the process ended", "line": 0}
            )
        missing = [at for at, outcome in enumerate(outcomes) if outcome is None]
        if loaded.get("error") or not missing:
            return {"loaded": loaded, "outcomes": [] if loaded.get("error") else outcomes}
        hung += 1
        outcomes[missing[0]] = (
            slow if silent else {"error": "Ended", "message": "the process ended", "line": 0}
        )
        first = missing[0] + 1
        if first >= len(calls) or hung >= MAX_HUNG:
            outcomes = [slow if one is None else one for one in outcomes]
            return {"loaded": loaded, "outcomes": outcomes}


def start(source: str, order: Json, first: int) -> Tuple[int, int]:
    """Fork the process of a source; its id, and the end of the pipe that it reports to."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        try:
            work(source, order, first, writing)
        finally:
            os._exit(0)
    os.close(writing)
    return process, reading


def messages(pipe: int, limits: Json) -> Iterator[Optional[Json]]:
    """The lines of a pipe, to its end; None once nothing has come for too long."""
    buffer = b""
    patience = limits["silence"]
    last = time.monotonic()
    while True:
        left = last + patience - time.monotonic()
        ready = select.select([pipe], [], [], max(0.0, left))[0]
        if not ready:
            yield None
            return
        data = os.read(pipe, 65536)
        if not data:
            return
        last = time.monotonic()
        buffer += data
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def main() -> None:
    """Read the order, run it, write the result."""
    with open(sys.argv[1], encoding="utf-8") as file:
        order = json.load(file)
    sys.setrecursionlimit(3000)
    results = [follow(source, order) for source in order["sources"]]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
