"""JSON responses, serialised by orjson."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response


def json_response(
    data: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Data (dataclasses and numpy arrays too) as a response."""
    body = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status_code=status, headers=headers, media_type="application/json")
