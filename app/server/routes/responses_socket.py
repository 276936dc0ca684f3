"""OpenAI's Responses API over WebSocket, at the same path."""

from fastapi import APIRouter, WebSocket

from app.server.calls.response_socket import PATH, ResponseSocket
from app.server.middleware.auth import requires
from app.server.middleware.origins import is_allowed_origin, refused_origin
from app.server.process.context import ServerContext
from app.server.wire.errors import error_response

router = APIRouter()


@router.websocket(PATH)
@requires("infer")
async def connect_responses(socket: WebSocket) -> None:
    """Responses one after the other, each asked for by a message `response.create`."""
    context: ServerContext = socket.app.state.server
    headers = socket.headers
    if not is_allowed_origin(context.config, headers.get("origin"), headers.get("host", "")):
        await socket.send_denial_response(error_response(refused_origin()))
        return
    await ResponseSocket(socket, socket.app).serve()
