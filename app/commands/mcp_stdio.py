"""`pravaha mcp`: the MCP server on standard input and output, until the input ends.

The protocol is spoken at once, because hosts wait only seconds for a server's first answer; the model is
loaded meanwhile, and calls of tools wait for it. Standard output has nothing but the protocol: the `mcp`
package sends everything else that is printed to standard error.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING

from app.commands.exit_signals import exit_on_signals
from engine.api.errors import PravahaError

if TYPE_CHECKING:
    import httpx
    from starlette.types import ASGIApp, Receive, Scope, Send

    from app.server.mcp.user_data import UserData
    from app.settings.settings import Settings


def serve_stdio(settings: "Settings") -> int:
    """Serve until standard input ends; the exit status.

    Args:
        settings: the settings; with `attach`, tools call that server and no model is loaded.

    Raises:
        PravahaError: no sandbox for agents that may read files.
    """
    from app.commands.log_stderr import log_to_stderr
    from app.server.mcp.api_client import in_process_client, remote_client
    from app.server.mcp.user_data import UserData

    log_to_stderr()
    with ExitStack() as stack:
        user = UserData(settings)
        stack.callback(user.close)
        if settings.attach is not None:
            remote = remote_client(settings.attach, settings.plain_api_key)
            return asyncio.run(_serve(remote, user, stack.close))
        opening = _OpeningApp(settings)
        stack.callback(opening.close)
        return asyncio.run(_serve(in_process_client(opening), user, stack.close))


async def _serve(http: "httpx.AsyncClient", user: "UserData", close: Callable[[], None]) -> int:
    from mcp.server.stdio import stdio_server

    from app.server.mcp.api_client import ApiClient
    from app.server.mcp.mcp_server import mcp_server

    exit_on_signals(close)
    server = mcp_server(ApiClient(http), user)
    async with http:
        try:
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
        except* BrokenPipeError:
            pass  # the host has closed our output: there is nobody to serve
    return 0


class _OpeningApp:
    """The API as an ASGI application that is opened by a thread; requests wait until it is."""

    def __init__(self, settings: "Settings") -> None:
        """Begin to open it.

        Raises:
            PravahaError: no sandbox for agents that may read files.
        """
        from app.commands.serve import sandbox_layers

        if settings.agents_root is not None:
            sandbox_layers(settings)
        self._settings = settings
        self._resources = ExitStack()
        self._lock = threading.Lock()
        self._closing = False
        self._opened: Future[ASGIApp] = Future()
        # A daemon, because a download cannot be interrupted.
        threading.Thread(target=self._open, name="pravaha-open", daemon=True).start()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request.

        Raises:
            PravahaError: the model cannot be loaded.
        """
        app = await asyncio.shield(asyncio.wrap_future(self._opened))
        await app(scope, receive, send)

    def close(self) -> None:
        """Shut the engine down."""
        with self._lock:
            self._closing = True
        self._resources.close()

    def _open(self) -> None:
        try:
            self._opened.set_result(self._app())
        except Exception as error:
            if not self._closing:
                print(f"pravaha: {error}", file=sys.stderr, flush=True)
            self._opened.set_exception(error)

    def _app(self) -> "ASGIApp":
        from app.commands.serve import describe_model
        from app.runtime.agents import open_run_service
        from app.runtime.guardrails import open_guardrails
        from app.runtime.opening import embedder, engine_config
        from app.server.app import create_app
        from app.server.process.config import ServerConfig
        from engine.runtime.engine import AsyncPravahaEngine

        settings = self._settings
        engine = AsyncPravahaEngine(engine_config(settings), embedder=embedder(settings))
        with self._lock:
            if self._closing:
                raise PravahaError("The host has left.")
            self._resources.callback(engine.shutdown)
            engine.start()
        root = settings.agents_root
        service = open_run_service(
            settings,
            engine,
            roots=() if root is None else [root],
            remembers=False,
            has_approver=False,
        )
        with self._lock:
            self._resources.callback(service.close)
        engine.wait_ready(None)
        print(describe_model(engine), file=sys.stderr, flush=True)
        return create_app(
            engine,
            ServerConfig(),
            run_service=service,
            guardrails=open_guardrails(settings),
        )
