"""`/mcp`: the API's functions for MCP hosts, over streamable HTTP."""

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.server.mcp.endpoint import McpEndpoint
from app.server.middleware.auth import requires
from app.server.wire.answers.errors import ErrorAnswer
from app.server.wire.answers.mcp import JsonRpcRequest, JsonRpcResponse
from app.server.wire.described import answers, reads

router = APIRouter()

_ERRORS = JsonRpcResponse | ErrorAnswer
"""Those of the protocol, and those of the server before it."""


@router.post("/mcp")
@requires("agents")
@reads(JsonRpcRequest)
@answers(
    JsonRpcResponse,
    events=JsonRpcResponse,
    also={202: "A notification was taken."},
    error=_ERRORS,
)
async def post_message(request: Request) -> Response:
    """One message of the protocol."""
    return _Served(request.app.state.mcp)


@router.delete("/mcp")
@requires("agents")
@answers(None, error=_ERRORS)
async def end_session(request: Request) -> Response:
    """End a session."""
    return _Served(request.app.state.mcp)


@router.get("/mcp")
@requires("agents")
@answers(None, status=405, error=_ERRORS)
async def stream_without_request(request: Request) -> Response:
    """There is no stream without a request: always refused, which the protocol allows."""
    return _Served(request.app.state.mcp)


class _Served(Response):
    """The answer of the endpoint, which writes it itself."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the endpoint answer."""
        await self._endpoint.serve(scope, receive, send)
