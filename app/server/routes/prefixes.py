"""The prefix cache: `GET /blocks/{block}`, `GET /prefix_tree`, `POST /residency`, `/pin` and `/unpin`.

The first two show the text of every request's prompt, and pins take memory from all requests, so they need
the scope `control`.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import ModelName, engine_named, loaded_model
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.engine import PinAnswer
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import PinRequest, ResidencyRequest, UnpinRequest
from engine.api.block_detail import BlockDetail, PrefixTree
from engine.api.residency import Residency

router = APIRouter(route_class=JsonRoute)


@router.get("/blocks/{block}")
@requires("control")
@answers(BlockDetail | None)
async def block(
    request: Request, block: Annotated[int, Path(ge=0, lt=2**31)], model: ModelName = None
) -> Response:
    """What one KV block holds."""
    return json_response(engine_named(server_context(request), model).block(block))


@router.get("/prefix_tree")
@requires("control")
@answers(PrefixTree | None)
async def prefix_tree(request: Request, model: ModelName = None) -> Response:
    """The prefix cache as chains of blocks, breadth first."""
    engine = engine_named(server_context(request), model)
    # In a thread: decoding the texts takes milliseconds, and the event loop serves all requests.
    return json_response(await run_in_threadpool(engine.prefix_tree))


@router.post("/residency")
@requires("infer")
@answers(Residency)
async def residency(body: ResidencyRequest, request: Request) -> Response:
    """How many leading tokens are in the pool and in the swap tier."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    return json_response(model.engine.residency(body.tokens))


@router.post("/pin")
@requires("control")
@answers(PinAnswer)
async def pin(body: PinRequest, request: Request) -> Response:
    """Pin the cached blocks of a prefix; the answer names the pin, `/events` tells what it covers."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    model.engine.pin(body.tokens, pin_id=body.pin_id)
    return json_response({"pin_id": body.pin_id})


@router.post("/unpin")
@requires("control")
@answers(PinAnswer)
async def unpin(body: UnpinRequest, request: Request) -> Response:
    """End a pin."""
    context = server_context(request)
    check_extra_fields(request, body)
    for model in context.models.all():
        model.engine.unpin(body.pin_id)
    return json_response({"pin_id": body.pin_id})
