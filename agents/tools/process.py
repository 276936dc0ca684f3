"""`run_process`: a child process with bounded output, a timeout, and no survivors when it is cancelled."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_OUTPUT_BYTES = 8 << 20
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended.

    Attributes:
        status: its exit status; negative for the signal that ended it.
        output: its standard output, at most `MAX_OUTPUT_BYTES`.
        errors: its standard error, bounded likewise.
        timed_out: whether it was killed because its time was over.
    """

    status: int
    output: bytes
    errors: bytes
    timed_out: bool = False


async def run_process(
    command: Sequence[str],
    *,
    input_bytes: bytes = b"",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 30.0,
) -> Finished:
    """Run a program in a process group of its own.

    Output beyond the bound is read and dropped, so that a full pipe never stops the program. When the time
    is over or the task is cancelled, the whole group is killed.

    Raises:
        OSError: the program cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=None if environment is None else dict(environment),
        start_new_session=True,
    )
    timed_out = False
    readers = [asyncio.ensure_future(_read(one)) for one in (process.stdout, process.stderr)]
    try:
        async with asyncio.timeout(timeout_s):
            await _write(process.stdin, input_bytes)
            await asyncio.gather(*readers)
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        _kill_group(process.pid)
        await process.wait()
        done = await asyncio.gather(*readers, return_exceptions=True)
    output, errors = (one if isinstance(one, bytes) else b"" for one in done)
    return Finished(process.returncode or 0, output, errors, timed_out)


async def _write(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    if stream is None:
        return
    try:
        stream.write(data)
        await stream.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it did not read all of it
    stream.close()


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    parts: list[bytes] = []
    size = 0
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        if size < MAX_OUTPUT_BYTES:
            parts.append(chunk[: MAX_OUTPUT_BYTES - size])
            size += len(chunk)
    return b"".join(parts)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended
