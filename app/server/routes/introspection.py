"""`GET /snapshot`, `/blocks`, `/requests`, `/steps` and `/events`: the state that `pravaha --attach` draws.

Times are the server's monotonic seconds; `now` of `/snapshot` is the current one.
"""

from dataclasses import astuple
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.server.calls.model import loaded_model
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.json_response import json_response
from engine.clients.block_wire import block_fields
from engine.clients.event_wire import batch_fields

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
    return json_response(
        {
            "snapshot": engine_snapshot,
            "now": context.engine.now(),
            "tokenizer_fingerprint": fingerprint,
        }
    )


@router.get("/blocks")
@requires("infer")
async def blocks(request: Request, since: Annotated[int, Query(ge=-1, lt=2**63)] = -1) -> Response:
    """The KV blocks that changed after epoch `since`, or all; 204 if none did."""
    context = server_context(request)
    block_map = context.engine.blocks(since)
    if block_map is None:
        return Response(status_code=204)
    base = context.block_history.base_for(block_map, since)
    block_size = context.engine.snapshot().blocks.block_size
    return json_response(block_fields(block_map, base, block_size=block_size))


@router.get("/events")
@requires("infer")
async def events(request: Request, since: Annotated[int, Query(ge=0, lt=2**63)] = 0) -> Response:
    """The latest engine events from number `since` on; `next` is the number to ask for next."""
    return json_response(batch_fields(server_context(request).engine.events_since(since)))


@router.get("/requests")
@requires("infer")
async def requests(request: Request) -> Response:
    """The live requests, running ones first."""
    return json_response({"requests": server_context(request).engine.request_table()})


@router.get("/steps")
@requires("infer")
async def steps(request: Request, since: Annotated[int, Query(ge=0, lt=2**63)] = 0) -> Response:
    """The last steps after step number `since`, and the plan of a recent one."""
    engine = server_context(request).engine
    entries = [astuple(entry) for entry in engine.recent_steps(since)]
    return json_response({"steps": entries, "plan": engine.planned_step()})
