"""`GET /installed_models`, `POST /v1/models/{id}/load` and `/unload`: replace the served model.

The engine keeps running: `GET /snapshot` shows the progress, `GET /v1/models` the model in force. Models
are named, never given by path: a client must not choose the files that this machine reads.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import check_name
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import ModelChangeRequest
from engine.api.errors import ModelError, ModelNotFound

router = APIRouter(route_class=JsonRoute)

Result = TypeVar("Result")


@router.get("/installed_models")
@requires("control")
async def installed_models(request: Request) -> Response:
    """The models installed where the engine runs, and whether each can be loaded."""
    engine = server_context(request).engine
    found = await asyncio.to_thread(_translated, engine.models)
    return json_response({"data": [asdict(one) | {"fits": one.fits} for one in found]})


@router.post("/v1/models/{name:path}/load")
@requires("control")
async def load_model(name: str, body: ModelChangeRequest, request: Request) -> Response:
    """Begin to replace the model; answers once its headers are read and it fits in memory."""
    context = server_context(request)
    check_extra_fields(request, body)
    engine = context.engine
    await asyncio.to_thread(
        _translated, lambda: engine.load_model(name, drain_s=body.drain_seconds)
    )
    return _accepted(context)


@router.post("/v1/models/{name:path}/unload")
@requires("control")
async def unload_model(name: str, body: ModelChangeRequest, request: Request) -> Response:
    """Begin to unload the model; the server runs on without one."""
    context = server_context(request)
    check_extra_fields(request, body)
    check_name(context, name)
    context.engine.unload_model(drain_s=body.drain_seconds)
    return _accepted(context)


def _accepted(context: ServerContext) -> Response:
    snapshot = context.engine.snapshot()
    state = {"status": snapshot.state.value, "next_model": snapshot.next_model}
    return json_response(state)


def _translated(work: Callable[[], Result]) -> Result:
    """Run `work`; errors of the model store become errors of the API.

    Raises:
        ApiError: 404 without such a model, 400 if it cannot be used or does not fit.
    """
    try:
        return work()
    except ModelNotFound as error:
        raise ApiError(404, str(error), param="model", code="model_not_found") from error
    except ModelError as error:
        raise bad_request(str(error), param="model", code="model_unusable") from error
