"""`GET /snapshot` and `GET /blocks`: the state that `pravaha --attach` draws.

Times are the server's monotonic seconds; compare them with `snapshot.time`.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.server.calls.model import loaded_model
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.json_response import json_response

router = APIRouter()


@router.get("/snapshot")
@requires("infer")
async def snapshot(request: Request) -> Response:
    """The engine at its last step boundary, and the tokenizer's fingerprint."""
    context = server_context(request)
    engine_snapshot = context.engine.snapshot()
    fingerprint = (
        loaded_model(context, None).tokenizer.fingerprint if engine_snapshot.model else None
    )
    return json_response({"snapshot": engine_snapshot, "tokenizer_fingerprint": fingerprint})


@router.get("/blocks")
@requires("infer")
async def blocks(request: Request, since: Annotated[int, Query(ge=-1, lt=2**63)] = -1) -> Response:
    """Every KV block; 204 if nothing changed after epoch `since`."""
    block_map = server_context(request).engine.blocks(since)
    return Response(status_code=204) if block_map is None else json_response(block_map)
