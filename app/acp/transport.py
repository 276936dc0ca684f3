"""`LineTransport`: JSON-RPC messages as lines over two file descriptors.

A line that is no message is answered with an error, and the next one is read. The end of the input, and an
output that nobody reads any more, are the end of the connection. Both descriptors may be pipes, files or
terminals: reading and writing wait on threads of their own, which end with the process.
"""

import asyncio
import json
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest message; images are sent as base64."""
_TOO_LONG_KEPT = 100
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class LineTransport:
    """A `Transport` of the `acp` package. Use from one event loop.

    Attributes:
        on_sent: called with each message that was written.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        """Begin to read. The descriptors stay the caller's."""
        self.on_sent: Callable[[dict[str, Any]], None] = lambda message: None
        self._loop = asyncio.get_running_loop()
        self._input = input_fd
        self._output = output_fd
        self._read: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._closed = False
        for work, name in ((self._read_lines, "acp-read"), (self._write_lines, "acp-write")):
            threading.Thread(target=work, name=name, daemon=True).start()

    # Transport.

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message; returns when it is written.

        Raises:
            ConnectionError: the connection has ended.
        """
        if self._closed:
            raise ConnectionError("The client has left.")
        written: asyncio.Future[None] = self._loop.create_future()
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":"), default=str)
        self._lines.put((line.encode() + b"\n", written))
        await written
        self.on_sent(message)

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while (line := await self._read.get()) is not None:
            if not line.strip():
                continue
            message, error = _message_of(line)
            if message is not None:
                return message
            try:
                await self.send(error)
            except ConnectionError:
                return None
        return None

    async def close(self) -> None:
        """End the connection; what waits to be written is written if somebody reads."""
        if not self._closed:
            self._closed = True
            self._lines.put(None)

    # Threads.

    def _read_lines(self) -> None:
        with os.fdopen(os.dup(self._input), "rb") as file:
            while True:
                try:
                    line = _whole_line(file)
                except OSError:
                    line = b""
                if not self._on_loop(self._read.put_nowait, line or None) or not line:
                    return

    def _write_lines(self) -> None:
        while (one := self._lines.get()) is not None:
            line, written = one
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._output, view) :]
            except OSError:  # nobody reads any more
                self._on_loop(self._fail, written)
                self._on_loop(self._read.put_nowait, None)
            else:
                self._on_loop(_finish, written)

    def _on_loop(self, call: Callable[..., Any], *arguments: Any) -> bool:
        """Call something on the loop; False if the loop has ended."""
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            return False
        return True

    def _fail(self, written: asyncio.Future[None]) -> None:
        self._closed = True
        if not written.done():
            written.set_exception(ConnectionError("The client has left."))


def _whole_line(file: BinaryIO) -> bytes:
    """The next line; of one that is too long only its beginning, which is no JSON."""
    line = file.readline(MAX_LINE_BYTES)
    rest = line
    while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
        rest = file.readline(MAX_LINE_BYTES)
        line = line[:_TOO_LONG_KEPT]
    return line


def _finish(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _message_of(line: bytes) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The message in a line, or None and the answer that says why it has none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, _error(_PARSE_ERROR, f"The line is no JSON: {error!s:.200}")
    if not isinstance(value, dict):
        return None, _error(_INVALID_REQUEST, "A message must be a JSON object.")
    number = value.get("id")
    known = number is None or (isinstance(number, str | int) and not isinstance(number, bool))
    if not known:
        return None, _error(_INVALID_REQUEST, "The id of a message must be a string or a number.")
    if "method" in value and not isinstance(value["method"], str):
        return None, _error(_INVALID_REQUEST, "The method of a message must be a string.", number)
    if "method" not in value and "result" not in value and "error" not in value:
        return None, _error(_INVALID_REQUEST, "A message must have a method or a result.", number)
    if value.get("error") is not None and not isinstance(value["error"], dict):
        value["error"] = {"message": str(value["error"])}
    return value, {}


def _error(code: int, message: str, number: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
