"""Messages of `/mcp`: JSON-RPC 2.0, as the Model Context Protocol has it."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer


class JsonRpcRequest(Answer):
    """A request, or without an id a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: str | int | None = None
    params: dict[str, Any] | None = None


class JsonRpcError(Answer):
    """Why a request failed."""

    code: int
    message: str
    data: Any = None


class JsonRpcResponse(Answer):
    """The answer to a request: a result or an error."""

    jsonrpc: Literal["2.0"]
    id: str | int | None = None
    result: dict[str, Any] | None = None
    error: JsonRpcError | None = None
