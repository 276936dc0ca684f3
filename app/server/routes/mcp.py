"""`/mcp`: the API's functions for MCP hosts, over streamable HTTP."""

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.server.mcp.endpoint import McpEndpoint
from app.server.middleware.auth import requires

router = APIRouter()


@router.api_route("/mcp", methods=["POST", "GET", "DELETE"])
@requires("agents")
async def mcp(request: Request) -> Response:
    """One message of the protocol, or the end of a session."""
    return _Served(request.app.state.mcp)


class _Served(Response):
    """The answer of the endpoint, which writes it itself."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the endpoint answer."""
        await self._endpoint.serve(scope, receive, send)
