"""`GET /snapshot`, `/blocks`, `/requests`, `/steps` and `/events`: the state that `pravaha --attach` draws.

It is that of the primary model's engine, or with `?model=NAME` that of another one's.
Times are the server's monotonic seconds; `now` of `/snapshot` is the current one.
"""

from dataclasses import astuple
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.server.calls.model import ModelName, engine_named, served_named
from app.server.middleware.auth import requires
from app.server.process.block_history import BlockHistory
from app.server.process.context import server_context
from app.server.wire.answers.engine import (
    BlocksAnswer,
    EventsAnswer,
    RequestsAnswer,
    SnapshotAnswer,
    StepsAnswer,
)
from app.server.wire.described import answers
from app.server.wire.json_response import json_response
from engine.clients.block_wire import block_fields
from engine.clients.event_wire import batch_fields

router = APIRouter()

Since = Annotated[int, Query(ge=0, lt=2**63)]


@router.get("/snapshot")
@requires("infer")
@answers(SnapshotAnswer)
async def snapshot(request: Request, model: ModelName = None) -> Response:
    """The engine at its last step boundary, and the tokenizer's fingerprint."""
    context = server_context(request)
    served = served_named(context, model)
    engine, engine_snapshot = served.engine, context.models.snapshot(served)
    fingerprint = engine.tokenizer.fingerprint if engine_snapshot.model else None
    return json_response(
        {
            "snapshot": engine_snapshot,
            "now": engine.now(),
            "tokenizer_fingerprint": fingerprint,
        }
    )


@router.get("/blocks")
@requires("infer")
@answers(BlocksAnswer, also={204: "No block has changed."})
async def blocks(
    request: Request,
    since: Annotated[int, Query(ge=-1, lt=2**63)] = -1,
    model: ModelName = None,
) -> Response:
    """The KV blocks that changed after epoch `since`, or all; 204 if none did."""
    context = server_context(request)
    engine = engine_named(context, model)
    block_map = engine.blocks(since)
    if block_map is None:
        return Response(status_code=204)
    history = context.block_histories.setdefault(engine, BlockHistory())
    base = history.base_for(block_map, since)
    block_size = engine.snapshot().blocks.block_size
    return json_response(block_fields(block_map, base, block_size=block_size))


@router.get("/events")
@requires("infer")
@answers(EventsAnswer)
async def events(request: Request, since: Since = 0, model: ModelName = None) -> Response:
    """The latest engine events from number `since` on; `next` is the number to ask for next."""
    engine = engine_named(server_context(request), model)
    return json_response(batch_fields(engine.events_since(since)))


@router.get("/requests")
@requires("infer")
@answers(RequestsAnswer)
async def requests(request: Request, model: ModelName = None) -> Response:
    """The live requests, running ones first."""
    engine = engine_named(server_context(request), model)
    return json_response({"requests": engine.request_table()})


@router.get("/steps")
@requires("infer")
@answers(StepsAnswer)
async def steps(request: Request, since: Since = 0, model: ModelName = None) -> Response:
    """The last steps after step number `since`, and the plan of a recent one."""
    engine = engine_named(server_context(request), model)
    entries = [astuple(entry) for entry in engine.recent_steps(since)]
    return json_response({"steps": entries, "plan": engine.planned_step()})
