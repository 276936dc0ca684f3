"""Errors in the form of Ollama's API: `{"error": "a sentence"}`.

Its clients print the text of `error`; an object would be printed as such. They get this form for whatever
they ask under `/api/`, refusals before the routes (the key, the size of the body) included.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.types import Scope

PATHS = "/api/"


def is_read_by(scope: Scope) -> bool:
    """Whether the client of a request reads this form."""
    path: str = scope["path"]
    return path.startswith(PATHS)


def error_body(message: str) -> Mapping[str, Any]:
    """The body of an error."""
    return {"error": message}


def error_line(error: HTTPException) -> bytes:
    """The line that stands for an error once a stream has begun."""
    return orjson.dumps(error_body(error.detail)) + b"\n"
