"""Errors in the format of Anthropic's API: `{"type": "error", "error": {type, message}, "request_id"}`.

Its clients get it for whatever they ask, refusals before the routes (the key, the size of the body) included.
A request is one of theirs if its path is under `/v1/messages`, or if it has the header that they all send.
"""

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

MESSAGES_PATH = "/v1/messages"

OVERLOADED = 529

_TYPE_BY_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def is_read_by(scope: Scope) -> bool:
    """Whether the client of a request reads this format."""
    path: str = scope["path"]
    return (
        path == MESSAGES_PATH
        or path.startswith(f"{MESSAGES_PATH}/")
        or "anthropic-version" in Headers(scope=scope)
    )


def status_of(status: int) -> int:
    """Anthropic's status for one of ours: a server that cannot answer now is overloaded."""
    return OVERLOADED if status == 503 else status


def error_body(
    status: int,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    request_id: str | None = None,
) -> dict[str, Any]:
    """The body of an error, also sent as the event `error` once a stream has begun.

    Args:
        status: as `status_of` returns it.
        message: one sentence.
        details: further members for clients, if any.
        request_id: of the request, if it is known.
    """
    kind = _TYPE_BY_STATUS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    error: dict[str, Any] = {"type": kind, "message": message}
    if details is not None:
        error["details"] = dict(details)
    return {"type": "error", "error": error, "request_id": request_id}
