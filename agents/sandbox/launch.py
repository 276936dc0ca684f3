"""`launch`: starts a launcher, gives it its order, and waits for the command's end.

Output is read without bound and kept with one (`OutputCapture`), so that a full pipe never stops a command.
When the time is over or the task is cancelled, everything that was started is killed before this returns.
"""

import asyncio
import codecs
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import orjson

from agents.sandbox import launcher
from agents.sandbox.captured_output import HEAD_BYTES, OutputCapture
from agents.sandbox.cgroup import ControlGroup
from agents.sandbox.sandbox import Command, CommandResult, SandboxFailed

START_S = 20.0
"""Seconds for the launcher to apply all layers; on a quiet machine it takes 0.03."""
_STOP_S = 8.0
_CHUNK = 65_536
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""Of the launcher itself; the command's is in the order."""
LAUNCHER_FILE = Path(launcher.__file__)


def extension_file() -> Path:
    """The file of the extension module `engine._core`."""
    from engine import _core

    return Path(_core.__file__)


def launcher_words(status: int) -> list[str]:
    """The command line of the launcher: an interpreter without site-packages and environment."""
    interpreter = os.path.realpath(sys.executable)
    return [interpreter, "-I", "-S", str(LAUNCHER_FILE), str(extension_file()), str(status)]


class _Report:
    """What the launcher has reported."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.settled = asyncio.Event()
        """Set when the command runs, or when it is known that it does not."""
        self.ready = False
        self.failed = ""
        self.absent = ""
        self.crowded = False
        self.exit: int | None = None

    async def follow(self, descriptor: int) -> None:
        """Read to the end."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        file = os.fdopen(descriptor, "rb")
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), file
        )
        try:
            while line := await reader.readline():
                self._take(line.decode("utf-8", "replace").rstrip("\n"))
        finally:
            transport.close()
            self.waiting.set()
            self.settled.set()

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word:
            case "waiting":
                self.waiting.set()
            case "ready":
                self.ready = True
                self.settled.set()
            case "failed":
                self.failed = self.failed or rest
                self.settled.set()
            case "absent":
                self.absent = rest
            case "crowded":
                self.crowded = True
            case "exit":
                self.exit = int(rest)


class _Launch:
    """One launcher with its tasks."""

    def __init__(
        self, process: asyncio.subprocess.Process, descriptor: int, command: Command
    ) -> None:
        self.process = process
        self.report = _Report()
        self.capture = OutputCapture(command.artifact)
        self._progress = command.progress
        self._tasks = [
            asyncio.ensure_future(self.report.follow(descriptor)),
            asyncio.ensure_future(self._read_output()),
        ]

    async def start(self, order: dict[str, Any], group: ControlGroup | None) -> None:
        """Give the order and wait until the command runs."""
        await self.report.waiting.wait()
        if group is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended: the report says why
                group.add(_tree(self.process.pid))
        if self.process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self.process.stdin.write(orjson.dumps(order))
                await self.process.stdin.drain()
            self.process.stdin.close()
        await self.report.settled.wait()

    async def end(self) -> None:
        """Wait until the command and everything that it started have ended."""
        # Cancelling this must not cancel the readers: asyncio sees a process end only when its pipes do.
        await asyncio.wait(self._tasks)
        await asyncio.gather(*self._tasks)
        await self.process.wait()

    async def stop(self, *, gently: bool) -> None:
        """Kill whatever is left, and wait until it is gone."""
        if gently and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):  # a descendant that survived would hold the pipes
                await asyncio.wait(self._tasks)
                await self.process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read_output(self) -> None:
        stream = self.process.stdout
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        shown = 0
        while stream is not None and (chunk := await stream.read(_CHUNK)):
            self.capture.add(chunk)
            if shown < HEAD_BYTES:
                shown += len(chunk)
                self._progress(decoder.decode(chunk))


@asynccontextmanager
async def _launched(
    words: Callable[[int], Sequence[str]], command: Command
) -> AsyncIterator[_Launch]:
    with _pipe() as (reading, writing):
        process = await asyncio.create_subprocess_exec(
            *words(writing),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=_ENVIRONMENT,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.set_blocking(reading, False)
        one = _Launch(process, os.dup(reading), command)
    yield one


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe, closed at the end."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


async def launch(
    words: Callable[[int], Sequence[str]],
    order: dict[str, Any],
    command: Command,
    *,
    wall_s: float,
    group: ControlGroup | None = None,
    stop_gently: bool = False,
) -> CommandResult:
    """Run a command by its order.

    Args:
        words: the command line that ends in the launcher, from the number of its status descriptor.
        order: for the launcher.
        command: what is run.
        wall_s: seconds until it is killed.
        group: the control group that it joins, or None.
        stop_gently: let the supervisor end the command before everything is killed; needed where no
            process namespace ends with it.

    Raises:
        SandboxFailed: a layer could not be applied.
    """
    began = time.monotonic()
    ended_by = ""
    async with _launched(words, command) as one:
        try:
            async with asyncio.timeout(START_S):
                await one.start(order, group)
            async with asyncio.timeout(wall_s):
                await one.end()
        except TimeoutError:
            ended_by = "the time limit"
        except OSError as error:
            raise SandboxFailed(f"The command was not run: {error}.") from error
        finally:
            await asyncio.shield(asyncio.ensure_future(one.stop(gently=stop_gently)))
            output = one.capture.close()
    report = one.report
    if not report.ready:
        said = report.failed or output.text.strip()[-300:] or "the launcher ended without a word"
        raise SandboxFailed(f"A layer of the sandbox could not be applied: {said}.")
    if report.crowded:
        ended_by = "the limit of processes"
    status = report.exit if report.exit is not None else -int(signal.SIGKILL)
    if report.absent:
        status = 127
    return CommandResult(status, output, time.monotonic() - began, ended_by, report.absent)


def _tree(root: int) -> list[int]:
    """A process and its descendants."""
    found = [root]
    for pid in found:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text()
                found += [int(child) for child in text.split()]
        except OSError:
            continue
    return found
