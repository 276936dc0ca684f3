"""`GET /v1/models` and `GET /v1/models/{id}`."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.model import check_name
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.codex_models import codex_model
from app.server.wire.json_response import json_response

router = APIRouter()


@router.get("/v1/models")
@requires("infer")
async def list_models(request: Request, client_version: str | None = None) -> Response:
    """The served model and, if it is installed, the embedding model; for Codex in its own form, too."""
    context = server_context(request)
    data = [describe(context)]
    if context.engine.embedder.installed:
        data.append(describe_embedder(context))
    models = {} if client_version is None else {"models": codex_models(context)}
    return json_response({"object": "list", "data": data, **models})


@router.get("/v1/models/{name:path}")
@requires("infer")
async def get_model(name: str, request: Request) -> Response:
    """One model by name."""
    context = server_context(request)
    embedder = context.engine.embedder
    if name == embedder.name and embedder.installed:
        return json_response(describe_embedder(context))
    check_name(context, name)
    return json_response(describe(context))


def describe(context: ServerContext) -> dict[str, Any]:
    """OpenAI's model object, with context length (vLLM's name for it) and status beside it."""
    snapshot = context.engine.snapshot()
    info = snapshot.model
    return {
        "id": context.engine.config.name,
        "object": "model",
        "created": context.created,
        "owned_by": "pravaha",
        "status": snapshot.state.value,
        "max_model_len": info and info.context_length,
        "details": info,
    }


def codex_models(context: ServerContext) -> list[dict[str, Any]]:
    """The served model in Codex's form; none while it is loading."""
    info = context.engine.snapshot().model
    if info is None:
        return []
    name = context.engine.config.name
    return [codex_model(name, info.context_length, sees_images=info.sees_images)]


def describe_embedder(context: ServerContext) -> dict[str, Any]:
    """OpenAI's model object of the embedding model, which `POST /v1/embeddings` takes."""
    return {
        "id": context.engine.embedder.name,
        "object": "model",
        "created": context.created,
        "owned_by": "pravaha",
    }
