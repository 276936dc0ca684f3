"""`GET /installed_models`, `POST /v1/models/{id}/load`, `/unload` and `/reload`: change the served models.

The server keeps running: `GET /snapshot` shows the progress, `GET /v1/models` the models in force. Models
are named, never given by path: a client must not choose the files that this machine reads.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import check_name
from app.server.middleware.auth import requires
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.models import InstalledModels, ModelChange
from app.server.wire.described import answers
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import ModelChangeRequest, ModelReloadRequest
from engine.api.available_model import AvailableModel
from engine.api.errors import ModelError, ModelNotFound
from engine.api.snapshot import EngineState
from engine.runtime.served_model import ModelChanging, ServedModel
from engine.runtime.served_models import ServedModels

router = APIRouter(route_class=JsonRoute)

Result = TypeVar("Result")


@router.get("/installed_models")
@requires("control")
@answers(InstalledModels)
async def installed_models(request: Request) -> Response:
    """The models installed where the engine runs, and whether each can be loaded."""
    models = server_context(request).models
    found = await asyncio.to_thread(_translated, models.primary.engine.models)
    if not models.is_single:
        found = _with_served(models, found)
    return json_response({"data": [asdict(one) | {"fits": one.fits} for one in found]})


def _with_served(models: ServedModels, found: Sequence[AvailableModel]) -> list[AvailableModel]:
    """The models that can be loaded here, of which those that are loaded fit, and may not be installed."""
    served = {one.name: one.engine.snapshot().model for one in models.all()}
    if not models.any_installed:
        found = [one for one in found if one.name in served]
    known = {one.name for one in found}
    others = [
        AvailableModel(
            name,
            0 if info is None else info.weight_bytes,
            "" if info is None else info.architecture,
            0 if info is None else info.parameters,
            "" if info is None else info.weight_format,
            0 if info is None else info.context_length,
            active_parameters=None if info is None else info.active_parameters,
        )
        for name, info in served.items()
        if name not in known
    ]
    return [_with_state(models, one) for one in (*found, *others)]


def _with_state(models: ServedModels, model: AvailableModel) -> AvailableModel:
    """A model with what the server has of it."""
    served = models.find(model.name)
    loaded = model.name == models.primary.name
    if served is None:
        return replace(model, loaded=loaded, status=EngineState.UNLOADED.value)
    snapshot = models.snapshot(served)
    return replace(
        model,
        loaded=loaded,
        problem="" if snapshot.model else model.problem,
        status=snapshot.state.value,
        memory_bytes=served.engine.memory_bytes,
        loading_progress=snapshot.loading_progress,
    )


@router.post("/v1/models/{name:path}/load")
@requires("control")
@answers(ModelChange)
async def load_model(name: str, body: ModelChangeRequest, request: Request) -> Response:
    """Begin to load a model; answers once its headers are read and it fits in memory.

    A server of one model replaces it.
    """
    context = server_context(request)
    check_extra_fields(request, body)
    models = context.models
    if models.resolved(name) == models.embedder.name:
        return await _change_embedder(context, models.embedder.load, body.keep_alive)
    if models.is_single:
        engine = context.engine
        await asyncio.to_thread(
            _translated, lambda: engine.load_model(name, drain_s=body.drain_seconds)
        )
        if body.keep_alive is not None:
            models.set_keep_alive(None, body.keep_alive)
        return _accepted(models, models.primary)
    change = await asyncio.to_thread(_translated, lambda: models.load(name))
    if body.keep_alive is not None:
        models.set_keep_alive(name, body.keep_alive)
    return await _begun(request, context, change, beside_others=True)


@router.post("/v1/models/{name:path}/unload")
@requires("control")
@answers(ModelChange)
async def unload_model(name: str, body: ModelChangeRequest, request: Request) -> Response:
    """Begin to unload a model; the server runs on without it."""
    context = server_context(request)
    check_extra_fields(request, body)
    models = context.models
    if models.resolved(name) == models.embedder.name:
        return await _change_embedder(context, models.embedder.unload, None)
    check_name(context, name)
    if models.is_single:
        context.engine.unload_model(drain_s=body.drain_seconds)
        return _accepted(models, models.primary)
    change = models.unload(name, drain_s=body.drain_seconds)
    return await _begun(request, context, change)


@router.post("/v1/models/{name:path}/reload")
@requires("control")
@answers(ModelChange)
async def reload_model(name: str, body: ModelReloadRequest, request: Request) -> Response:
    """Begin to load a model anew from its files without dropping a request."""
    context = server_context(request)
    check_extra_fields(request, body)
    models = context.models
    if models.resolved(name) == models.embedder.name:
        models.embedder.unload()
        return await _change_embedder(context, models.embedder.load, None)
    check_name(context, name)
    change = models.reload(name, drain_s=body.drain_seconds)
    return await _begun(request, context, change)


async def _begun(
    request: Request, context: ServerContext, change: ModelChanging, *, beside_others: bool = False
) -> Response:
    """The answer once a change is known to be possible.

    `beside_others` tells clients that the model replaces none.

    Raises:
        ApiError: it is not.
        ClientDisconnected: the client left while the change waited for others.
    """

    async def accepted() -> None:
        await asyncio.wrap_future(change.accepted)

    try:
        await while_connected(request, context, accepted())
    except ModelError as error:
        raise _translation(error) from error
    return _accepted(
        context.models, change.model, **({"beside_others": True} if beside_others else {})
    )


async def _change_embedder(
    context: ServerContext, change: Callable[[], "Future[None]"], keep_alive_s: float | None
) -> Response:
    """Load or unload the embedding model, which takes a moment.

    Raises:
        ApiError: 404, it is not installed; 400, it cannot be used.
    """
    work = change()
    try:
        await asyncio.wrap_future(work)
    except ModelError as error:
        raise _translation(error) from error
    context.models.use_embedder(keep_alive_s)
    state = EngineState.READY if context.models.embedder.loaded else EngineState.UNLOADED
    return json_response({"status": state.value, "next_model": None})


def _accepted(models: ServedModels, model: ServedModel, **more: bool) -> Response:
    snapshot = models.snapshot(model)
    state = {"status": snapshot.state.value, "next_model": snapshot.next_model}
    return json_response(state | more)


def _translated(work: Callable[[], Result]) -> Result:
    """Run `work`; errors of the model store become errors of the API.

    Raises:
        ApiError: 404 without such a model, 400 if it cannot be used or does not fit.
    """
    try:
        return work()
    except ModelError as error:
        raise _translation(error) from error


def _translation(error: ModelError) -> ApiError:
    if isinstance(error, ModelNotFound):
        return ApiError(404, str(error), param="model", code="model_not_found")
    return bad_request(str(error), param="model", code="model_unusable")
