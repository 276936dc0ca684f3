"""`McpEndpoint`: `/mcp`, the MCP server over streamable HTTP.

Requests of 2026-07-28 stand for themselves; those of 2025-11-25 and before belong to sessions. There is no
stream without a request: GET is answered with 405, which both revisions allow. The `mcp` package takes half
a second to import, so nothing is opened before the first request.
"""

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.mcp.disconnect import watched
from app.server.mcp.kept_alive import KeptAlive
from app.server.middleware.origins import is_allowed_origin, refused_origin
from app.server.process.config import ServerConfig
from app.server.wire.errors import ApiError, error_response

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_EVENTS = "text/event-stream"
MAX_SESSIONS = 1000
"""Sessions at a time; further ones are refused with 503 until some have ended."""
SESSION_IDLE_S = 1800.0


class McpEndpoint:
    """Serves one application's API as MCP. Used on one event loop, with which it ends."""

    def __init__(self, api: ASGIApp, config: ServerConfig) -> None:
        """Nothing is opened yet.

        Args:
            api: the application with the API, which tools call.
            config: the server's settings.
        """
        self._api = api
        self._config = config
        self._opening = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._holder: asyncio.Task[None] | None = None

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = Headers(scope=scope)
        if not is_allowed_origin(self._config, headers.get("origin"), headers.get("host", "")):
            await error_response(refused_origin())(scope, receive, send)
            return
        if scope["method"] not in ("POST", "DELETE"):
            refusal = ApiError(
                405,
                "There is no stream without a request here: POST messages.",
                headers={"allow": "POST, DELETE"},
            )
            await error_response(refusal)(scope, receive, send)
            return
        request = await watched(scope, receive)
        if request is None:
            return
        manager = await self._opened()
        # Only requests that stand for themselves have this header; the head of others may name a session.
        stands_alone = "mcp-method" in headers and _EVENTS in headers.get("accept", "")
        answer = KeptAlive(send, interval_s=self._config.keep_alive_s, may_begin=stands_alone)
        async with answer.beating():
            await manager.handle_request(*request, answer.send)

    async def _opened(self) -> "StreamableHTTPSessionManager":
        async with self._opening:
            if self._manager is None:
                manager = await asyncio.to_thread(self._build)
                ready = asyncio.Event()
                self._holder = asyncio.create_task(_hold(manager, ready))
                await ready.wait()
                self._manager = manager
            return self._manager

    def _build(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from app.server.mcp.api_client import ApiClient, in_process_client
        from app.server.mcp.mcp_server import mcp_server

        return StreamableHTTPSessionManager(
            mcp_server(ApiClient(in_process_client(self._api))),
            max_request_body_size=self._config.max_body_bytes,
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=SESSION_IDLE_S,
        )


async def _hold(manager: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
    """Keep the sessions' tasks until the loop ends, which cancels this."""
    async with manager.run():
        ready.set()
        await asyncio.Event().wait()
