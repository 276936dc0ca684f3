"""`stdio_streams`: a started program as a transport of MCP messages, one JSON object a line.

The SDK's own transport keeps a line of any length in memory, inherits more of the environment and waits two
seconds for a program that hangs. Here a message is bounded, the program gets a scrubbed environment and a
process group of its own, and the group is killed at the end, whatever it started.
"""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from agents.mcp.errors import McpError
from agents.mcp.server import McpServer
from agents.text.plain import plain_line

MAX_MESSAGE_BYTES = 8 << 20
MAX_MALFORMED = 20
"""Lines that are no message after which a program is given up."""
EXIT_S = 0.5
"""Seconds that a program gets to exit when its input is closed, and again after SIGTERM."""
_CHUNK = 65_536
_KEPT_ERRORS = 20
_POLL_S = 0.005
_LAST_OUTPUT_S = 0.2

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


class StdioProcess:
    """A running program.

    Attributes:
        problem: the rule that it broke, or empty.
        ended: whether no further message comes.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, transport: asyncio.SubprocessTransport
    ) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the program must have been started with pipes")
        self.process = process
        self._input, self._output, self._error_output = (
            process.stdin,
            process.stdout,
            process.stderr,
        )
        self._transport = transport
        self.problem = ""
        self.ended = False
        self._errors: deque[str] = deque(maxlen=_KEPT_ERRORS)

    def last_words(self) -> str:
        """Why it ended, as far as it is known: our own reason, or its last line on standard error."""
        if self.problem:
            return self.problem
        status = self.process.returncode
        ended = "" if status is None else f"it ended with status {status}"
        said = next((line for line in reversed(self._errors) if line), "")
        return "; ".join(part for part in (ended, said) if part)

    async def read_errors(self) -> None:
        """Keep the last lines of standard error. A full pipe would stop the program."""
        rest = b""
        while chunk := await self._error_output.read(_CHUNK):
            *lines, rest = (rest + chunk)[-_CHUNK:].split(b"\n")
            self._errors.extend(_error_line(line) for line in lines[-_KEPT_ERRORS:])
        self._errors.append(_error_line(rest))

    async def read_messages(
        self, receiver: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Pass on messages until the program ends, or breaks the rules."""
        async with receiver:
            try:
                await self._pass_on(receiver)
            finally:
                self.ended = True  # before the session learns that there are no more messages

    async def _pass_on(self, receiver: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        buffer = bytearray()
        malformed = 0
        while chunk := await self._output.read(_CHUNK):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                buffer += line
                message = _message(bytes(buffer))
                buffer.clear()
                malformed += isinstance(message, Exception)
                if malformed > MAX_MALFORMED:
                    self.problem = f"it wrote more than {MAX_MALFORMED} lines that are no messages"
                    return
                if message is not None:
                    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await receiver.send(message)
            buffer += rest
            if len(buffer) > MAX_MESSAGE_BYTES:
                self.problem = f"it wrote a message of more than {MAX_MESSAGE_BYTES >> 20} MB"
                return

    async def write_messages(self, sender: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages until there are no more."""
        async with sender:
            async for message in sender:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._input.write(text.encode("utf-8", "replace") + b"\n")
                with contextlib.suppress(ConnectionError):
                    await self._input.drain()

    async def stop(self) -> None:
        """Close its input; then SIGTERM and SIGKILL to its group, which its children are in, too."""
        self._input.close()
        if not self.problem and not await self._exits():
            self._signal(signal.SIGTERM)
            await self._exits()
        self._signal(signal.SIGKILL)
        await self._exits()

    def close(self) -> None:
        """Close its pipes, which a descendant that left the group may hold open."""
        self._transport.close()

    async def _exits(self) -> bool:
        """Whether the program exits within `EXIT_S`.

        `Process.wait` also waits for the end of its pipes, which a child may hold open or nobody may read.
        """
        deadline = asyncio.get_running_loop().time() + EXIT_S
        while self.process.returncode is None:
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


@asynccontextmanager
async def stdio_streams(
    server: McpServer,
) -> AsyncIterator[tuple[Incoming, Outgoing, StdioProcess]]:
    """Start the server's program; at the end it and its children are gone.

    Raises:
        McpError: it cannot be started.
    """
    running = await _start(server)
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.ensure_future(running.read_messages(received)),
        asyncio.ensure_future(running.read_errors()),
        asyncio.ensure_future(running.write_messages(sent)),
    ]
    try:
        yield incoming, outgoing, running
    finally:
        for stream in (incoming, outgoing):
            stream.close()
        try:
            # A second cancellation must not leave the program running.
            await asyncio.shield(asyncio.ensure_future(_finish(running, tasks)))
        finally:
            for end in (received, sent):
                end.close()


async def _finish(running: StdioProcess, tasks: Sequence[asyncio.Future[None]]) -> None:
    """Stop the program, then its readers, which first get what it wrote last."""
    await running.stop()
    if tasks:
        await asyncio.wait(tasks, timeout=_LAST_OUTPUT_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    running.close()


async def _start(server: McpServer) -> StdioProcess:
    # A cancelled start would leave its process running: let it finish, which takes milliseconds.
    starting = asyncio.ensure_future(_spawn(server, server.environment()))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await _finish(await starting, [])
        raise
    except (OSError, ValueError) as error:
        raise McpError(
            f"The MCP server {server.name} cannot be started: {error!s:.200}."
        ) from error


async def _spawn(server: McpServer, environment: dict[str, str]) -> StdioProcess:
    loop = asyncio.get_running_loop()
    pipe = asyncio.subprocess.PIPE
    transport, protocol = await loop.subprocess_exec(
        lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=_CHUNK, loop=loop),
        server.command,
        *server.args,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=server.cwd or Path.home(),
        env=environment,
        start_new_session=True,
    )
    return StdioProcess(asyncio.subprocess.Process(transport, protocol, loop), transport)


def _error_line(line: bytes) -> str:
    return plain_line(line.decode("utf-8", "replace"), 300)


def _message(line: bytes) -> SessionMessage | Exception | None:
    """The message of a line; None for a blank one."""
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error
