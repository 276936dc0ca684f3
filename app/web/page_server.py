"""`PageServer`: textual-serve's page and WebSocket, behind a `Guard`, on a socket of ours.

Each tab is a process of its own; they share the engine, which is behind an address that the processes attach
to. A tab that is closed ends its process.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web
from textual_serve.server import Server, to_int

from app.web.guard import Guard, Handler
from app.web.page import page_html

CLOSE_S = 2.0
"""Time that tabs get to end their processes."""


class PageServer(Server):
    """Serves `command`, a shell command that runs a Textual app.

    Args:
        command: run for each tab.
        guard: checks every request.
        on_start: called when the page can be opened.
    """

    def __init__(self, command: str, guard: Guard, on_start: Callable[[], None]) -> None:
        super().__init__(command, title="Pravāha")
        self._guard = guard
        self._on_start = on_start

    def run(self, listener: socket.socket) -> None:
        """Serve until SIGINT or SIGTERM."""
        asyncio.run(self._run(listener))

    async def on_startup(self, app: web.Application) -> None:
        """Nothing: textual-serve prints its logo and the command here."""

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page, with addresses by the name under which it was opened."""
        socket = f"ws{request.scheme.removeprefix('http')}://{request.host}/ws"
        font_size = to_int(request.query.get("fontsize", "16"), 16)
        page = page_html(title=self.title, socket=socket, font_size=font_size)
        return web.Response(text=page, content_type="text/html")

    async def _run(self, listener: socket.socket) -> None:
        app = await self._make_app()
        app.middlewares.append(_middleware(self._guard.check))
        runner = web.AppRunner(app, shutdown_timeout=CLOSE_S, access_log=None)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            self._on_start()
            await stop.wait()
        finally:
            await runner.cleanup()


def _middleware(
    check: Callable[[web.Request, Handler], Coroutine[Any, Any, web.StreamResponse]],
) -> Any:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await check(request, handler)

    return middleware
