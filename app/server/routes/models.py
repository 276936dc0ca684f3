"""`GET /v1/models` and `GET /v1/models/{id}`.

Each model has the members of OpenAI's and of Anthropic's clients, and so has the list.
"""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.server.calls.model import unknown_model
from app.server.calls.retrieval import Cursor
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.models import ModelList, ModelObject
from app.server.wire.codex_models import codex_model
from app.server.wire.described import answers
from app.server.wire.errors import bad_request
from app.server.wire.instant import rfc3339
from app.server.wire.json_response import json_response
from engine.api.snapshot import EngineSnapshot, EngineState

router = APIRouter()

MAX_PAGE = 1000
Lifecycle = Annotated[
    list[Literal["active", "deprecated", "retired"]] | None, Query(alias="lifecycle[]")
]


@router.get("/v1/models")
@requires("infer")
@answers(ModelList)
async def list_models(
    request: Request,
    client_version: str | None = None,
    limit: Annotated[int | None, Query(ge=1, le=MAX_PAGE)] = None,
    after_id: Cursor = None,
    before_id: Cursor = None,
    lifecycle: Lifecycle = None,
) -> Response:
    """The served models and, if it is installed, the embedding model; for Codex in its own form, too.

    Without Anthropic's parameters of pages, the page has all of them.
    """
    context = server_context(request)
    names = await asyncio.to_thread(context.models.names)
    data = [describe(context, name) for name in names]
    if context.models.embedder.installed:
        data.append(describe_embedder(context))
    if lifecycle is not None:
        data = [one for one in data if one["lifecycle"] in lifecycle]
    data, has_more = _page(data, limit, after_id, before_id)
    ids = [one["id"] for one in data] or [None]
    pages = {"first_id": ids[0], "last_id": ids[-1], "has_more": has_more}
    models = {} if client_version is None else {"models": codex_models(context)}
    return json_response({"object": "list", "data": data, **pages, **models})


@router.get("/v1/models/{name:path}")
@requires("infer")
@answers(ModelObject)
async def get_model(name: str, request: Request) -> Response:
    """One model by its name or an alias."""
    context = server_context(request)
    embedder = context.models.embedder
    if context.models.resolved(name) == embedder.name and embedder.installed:
        return json_response(describe_embedder(context))
    served = context.models.find(name)
    if served is not None:
        return json_response(describe(context, served.name))
    if name not in await asyncio.to_thread(context.models.names):
        raise unknown_model(context, name)
    return json_response(describe(context, name))


def _page(
    models: list[dict[str, Any]], limit: int | None, after: str | None, before: str | None
) -> tuple[list[dict[str, Any]], bool]:
    """The models after or before one, and whether there are more in that direction.

    Raises:
        ApiError: 400, there is no model of that name.
    """
    ids = [one["id"] for one in models]
    for param, name in (("after_id", after), ("before_id", before)):
        if name is not None and name not in ids:
            raise bad_request(f"There is no model {name[:80]!r} in the list.", param=param)
    begin = 0 if after is None else ids.index(after) + 1
    end = len(models) if before is None else ids.index(before)
    between = models[begin:end]
    if limit is None or len(between) <= limit:
        return between, False
    return (between[-limit:] if before is not None and after is None else between[:limit]), True


def describe(context: ServerContext, name: str) -> dict[str, Any]:
    """The model object of a model, with context length (vLLM's name for it), status and aliases."""
    served = context.models.find(name)
    aliases = context.models.aliases_of(name)
    snapshot = None if served is None else context.models.snapshot(served)
    info = snapshot and snapshot.model
    length = info and info.context_length
    return {
        **_model(context, name),
        "status": (EngineState.UNLOADED if snapshot is None else snapshot.state).value,
        "max_model_len": length,
        "max_input_tokens": length,
        "max_tokens": length,
        "details": info,
        **_progress(snapshot),
        **({"aliases": aliases} if aliases else {}),
    }


def _progress(snapshot: EngineSnapshot | None) -> dict[str, float]:
    """How far the load is, while there is one."""
    if snapshot is None or snapshot.state is not EngineState.LOADING:
        return {}
    return {"loading_progress": snapshot.loading_progress}


def codex_models(context: ServerContext) -> list[dict[str, Any]]:
    """The loaded models in Codex's form."""
    loaded = [(one.name, one.engine.snapshot().model) for one in context.models.all()]
    return [
        codex_model(name, info.context_length, sees_images=info.sees_images)
        for name, info in loaded
        if info is not None
    ]


def describe_embedder(context: ServerContext) -> dict[str, Any]:
    """The model object of the embedding model, which embeds and reranks."""
    models, embedder = context.models, context.models.embedder
    aliases = models.aliases_of(embedder.name)
    state = EngineState.READY if embedder.loaded else EngineState.UNLOADED
    return {
        **_model(context, embedder.name),
        "status": state.value,
        **({"aliases": aliases} if aliases else {}),
    }


def _model(context: ServerContext, name: str) -> dict[str, Any]:
    """A model object: OpenAI's members, then Anthropic's."""
    return {
        "id": name,
        "object": "model",
        "created": context.created,
        "owned_by": "pravaha",
        "type": "model",
        "display_name": name,
        "created_at": rfc3339(datetime.fromtimestamp(context.created, UTC)),
        "lifecycle": "active",
    }
