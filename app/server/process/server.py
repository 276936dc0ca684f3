"""The uvicorn server with a graceful drain.

uvicorn closes its sockets on the first signal, so that a load balancer would see refused connections
instead of a `/ready` that answers 503. Here the first signal starts the drain, and uvicorn exits when
the drain has finished. A second signal exits immediately.
"""

import asyncio
import os
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.server.process.config import ServerConfig
from app.server.process.connection import Connection
from app.server.process.context import ServerContext
from app.server.wire.body_size import base64_length
from app.settings.cors_origin import ANY_PAGE
from engine.api.errors import PravahaError

KEEP_ALIVE_S = 30
WEBSOCKET_PONG_S = 60.0
"""Time for the answer to a ping; a client is asked every 20 seconds."""
CLOSE_CONNECTIONS_S = 3
"""Timeout for closing connections after the drain: the rest are idle or their clients do not read."""


class DrainingServer(uvicorn.Server):
    """A uvicorn server that drains on the first signal."""

    def __init__(self, app: FastAPI) -> None:
        context: ServerContext = app.state.server
        config = context.config
        super().__init__(
            uvicorn.Config(
                app,
                loop="auto",  # uvloop where it is installed
                http=Connection,
                ws="websockets-sansio",
                ws_max_size=config.max_body_bytes + base64_length(config.max_image_bytes),
                ws_ping_timeout=WEBSOCKET_PONG_S,
                ws_per_message_deflate=False,  # it saves no work on loopback, and bombs are possible
                lifespan="off",
                # uvicorn's own logging configuration would close every handler of the process, such as
                # the screen's log file.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=CLOSE_CONNECTIONS_S,
            )
        )
        self._context = context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._signalled = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen; keep the loop for the signal handler."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """First signal: drain. Second: exit immediately, with status 128 plus the signal's number."""
        if self._signalled:
            os._exit(128 + sig)
        self._signalled = True
        self.request_exit()

    def request_exit(self) -> None:
        """Drain, then exit. Returns at once; may be called from any thread while the server runs."""
        if self._loop is None:
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self.leave)

    def leave(self) -> None:
        """Begin the drain; call on the event loop."""
        self._leaving = asyncio.create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        await self._context.drain.run(self._context.config.drain_s)
        self.should_exit = True


def listen(config: ServerConfig) -> socket.socket:
    """A bound, listening socket.

    Raises:
        PravahaError: there is no key, and the address is public or any web page may ask; or the address
            cannot be bound.
    """
    if not config.api_key and (open_to := ANY_PAGE.intersection(config.cors_origins)):
        raise PravahaError(
            f"Refusing to answer every web page (--cors-origin {min(open_to)}) without an API key: "
            "give one with --api-key or PRAVAHA_API_KEY, or name the pages' origins."
        )
    if not config.on_loopback and not config.api_key:
        raise PravahaError(
            f"Refusing to listen on {config.host} without an API key: give one with --api-key "
            "or PRAVAHA_API_KEY, or stay on 127.0.0.1."
        )
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=2048)
    except OSError as error:
        raise PravahaError(
            f"Cannot listen on {config.host}:{config.port}: {error.strerror or error}."
        ) from error


def base_url(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
