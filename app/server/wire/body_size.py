"""The limit of bodies without the data of their images, which `BodyLimit` sets for each request."""

from starlette.types import Scope

from app.server.wire.errors import ApiError

_KEY = "max_body_bytes"


def limit_body(scope: Scope, max_bytes: int) -> None:
    """Set the limit of one request."""
    scope.setdefault("state", {})[_KEY] = max_bytes


def check_body_size(scope: Scope, size: int) -> None:
    """Refuse a body that is too large without its images.

    Raises:
        ApiError: 413.
    """
    limit = max_body_bytes(scope)
    if limit is not None and size > limit:
        raise too_large(limit)


def max_body_bytes(scope: Scope) -> int | None:
    """The limit of a request, or of a message of a connection; None if none is set."""
    limit: int | None = scope.get("state", {}).get(_KEY)
    return limit


def base64_length(size: int) -> int:
    """Characters of so many bytes in base64."""
    return -(-size // 3) * 4


def too_large(max_bytes: int, *, what: str = "The request body is") -> ApiError:
    """The refusal; the connection is closed, because the rest of the body may not have been read."""
    return ApiError(
        413,
        f"{what} larger than {max_bytes} bytes.",
        code="request_too_large",
        headers={"connection": "close"},
    )
