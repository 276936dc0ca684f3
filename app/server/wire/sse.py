"""Server-sent events as bytes."""

from collections.abc import Mapping
from typing import Any

import orjson

from app.server.wire.errors import ApiError, error_body

DONE = b"data: [DONE]\n\n"
COMMENT = b": keep-alive\n\n"


def event(data: Mapping[str, Any]) -> bytes:
    """One unnamed event."""
    return b"data: " + orjson.dumps(data) + b"\n\n"


def named_event(data: Mapping[str, Any]) -> bytes:
    """One event under the name of its `type`."""
    return f"event: {data['type']}\n".encode() + event(data)


def numbered(number: int, data: bytes) -> bytes:
    """An event with its number, which a client sends back as `Last-Event-ID` to get those after it."""
    return b"id: %d\n" % number + data


def error_event(error: ApiError) -> bytes:
    """The event that stands for an HTTP error once the status line has gone out."""
    return event(error_body(error.status_code, error.detail, param=error.param, code=error.code))
