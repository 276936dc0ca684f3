"""A real HTTP server on loopback for tests of fetching, and a guard that lets exactly its address pass."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agents.tools.address_guard import AddressGuard, is_public

Answer = bytes | Callable[[str], bytes]


def answer(
    body: str | bytes = "",
    kind: str = "text/plain",
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> bytes:
    """The bytes of a response."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def redirect(target: str, status: int = 302) -> bytes:
    """A redirect."""
    return answer(status=status, headers={"location": target})


@dataclass
class WebServer:
    """Answers by path; `requests` has the head of each request."""

    pages: dict[str, Answer]
    port: int = 0
    requests: list[str] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    hosts: dict[str, Sequence[str]] = field(default_factory=dict)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Names are loopback, unless `hosts` says something else."""
        self.resolved.append(host)
        return self.hosts.get(host, ["127.0.0.1"])

    @property
    def guard(self) -> AddressGuard:
        """Lets the server's own address pass beside public ones."""
        return AddressGuard(
            self.resolve, is_allowed=lambda one: str(one) == "127.0.0.1" or is_public(one)
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            path = head.split(" ")[1]
            page = self.pages.get(path, answer("no such page", status=404))
            writer.write(page(head) if callable(page) else page)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def web_server(pages: dict[str, Answer]) -> AsyncIterator[WebServer]:
    """A server that runs until the end of the block."""
    server = WebServer(pages)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
