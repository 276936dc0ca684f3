"""Error responses in OpenAI's format: `{"error": {message, type, param, code}}`.

Clients of Anthropic's API and of Ollama's get those formats (`anthropic_errors`, `ollama_errors`).

The official client retries 408, 409, 429 and 5xx as the hints in the headers say; errors that are
worth a retry carry them.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.server.wire import anthropic_errors, ollama_errors
from app.server.wire.body import IMAGE_TAG, TEXT_TAG
from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull

log = logging.getLogger(__name__)

QUEUE_FULL_RETRY_S = 1
UNAVAILABLE_RETRY_S = 5

_TYPE_BY_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class ApiError(HTTPException):
    """A refusal with an HTTP status; `detail` is the one-sentence message.

    `details` are members of Anthropic's error by which its clients know what to do next.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.param = param
        self.code = code
        self.details = details

    def of_field(self, param: str | None, message: str) -> "ApiError":
        """The same error about another field, in another sentence."""
        return ApiError(
            self.status_code,
            message,
            param=param,
            code=self.code,
            headers=self.headers,
            details=self.details,
        )


def bad_request(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """A 400: the request is invalid."""
    return ApiError(400, message, param=param, code=code)


def unavailable(message: str, *, code: str = "unavailable") -> ApiError:
    """A 503 with retry hints."""
    return ApiError(503, message, code=code, headers=retry_hints(UNAVAILABLE_RETRY_S))


def server_error(message: str, *, code: str | None = None) -> ApiError:
    """A 500 of which a repetition would fail again; clients retry one without this hint."""
    return ApiError(500, message, code=code, headers={"x-should-retry": "false"})


def retry_hints(seconds: int) -> dict[str, str]:
    """Headers that tell the official client to retry after `seconds`."""
    return {
        "retry-after": str(seconds),
        "retry-after-ms": str(seconds * 1000),
        "x-should-retry": "true",
    }


def error_body(status: int, message: str, *, param: str | None, code: str | None) -> dict[str, Any]:
    """The `error` object of a status, also sent as an event once a stream has begun."""
    kind = _TYPE_BY_STATUS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def from_engine(error: BaseException) -> ApiError:
    """The HTTP error for an exception of the engine; an unknown one is logged and becomes a 500."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, InvalidRequest):
        return bad_request(str(error), param=error.param, code=error.code)
    if isinstance(error, QueueFull):
        hints = retry_hints(QUEUE_FULL_RETRY_S)
        return ApiError(429, str(error), code="queue_full", headers=hints)
    if isinstance(error, EngineUnavailable):
        return unavailable(str(error))
    log.error("unhandled error in a request", exc_info=error)
    return server_error("The server failed on this request; its log has the details.")


class ErrorResponse(Response):
    """An `ApiError` as a response, in the format that the client of the request reads."""

    media_type = "application/json"

    def __init__(self, error: ApiError) -> None:
        body = error_body(error.status_code, error.detail, param=error.param, code=error.code)
        super().__init__(orjson.dumps(body), error.status_code, error.headers)
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        error = self._error
        if ollama_errors.is_read_by(scope):
            body = orjson.dumps(ollama_errors.error_body(error.detail))
            response = Response(body, error.status_code, error.headers, self.media_type)
            await response(scope, receive, send)
            return
        if not anthropic_errors.is_read_by(scope):
            await super().__call__(scope, receive, send)
            return
        status = anthropic_errors.status_of(error.status_code)
        fields = anthropic_errors.error_body(
            status,
            error.detail,
            details=error.details,
            request_id=scope.get("state", {}).get("request_id"),
        )
        response = Response(orjson.dumps(fields), status, error.headers, self.media_type)
        await response(scope, receive, send)


def error_response(error: ApiError) -> Response:
    """An `ApiError` as a response."""
    return ErrorResponse(error)


def install(app: FastAPI) -> None:
    """Add handlers that give errors of the framework and of the engine OpenAI's format."""

    async def on_http(_: Request, error: Any) -> Response:
        if isinstance(error, ApiError):
            return error_response(error)
        return error_response(ApiError(error.status_code, _sentence(error), headers=error.headers))

    async def on_validation(_: Request, error: Any) -> Response:
        return error_response(from_validation(error.errors()))

    async def on_engine(_: Request, error: Exception) -> Response:
        return error_response(from_engine(error))

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)
    for kind in (InvalidRequest, QueueFull, EngineUnavailable):  # `Envelope` handles all others
        app.add_exception_handler(kind, on_engine)


def _sentence(error: HTTPException) -> str:
    if error.status_code == 404:
        return "There is nothing at this path."
    if error.status_code == 405:
        return "This path does not take that method."
    return str(error.detail)


def from_validation(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """Pydantic's first error as a 400 that names the field."""
    first = errors[0]
    # "body", "query" or "path" comes first; a body that was validated here has none of them.
    source, *where = first["loc"] or ("body",)
    param = _dotted(where if source in ("body", "query", "path") else first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ")
    subject = f"`{param}` is not valid" if param else "The request body is not valid"
    return bad_request(f"{subject}: {reason}.", param=param)


def _dotted(where: Sequence[str | int]) -> str | None:
    """`("messages", 0, "content")` as `messages[0].content`."""
    path = ""
    for part in where:
        if part in (TEXT_TAG, IMAGE_TAG):
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path or None
