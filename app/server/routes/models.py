"""`GET /v1/models` and `GET /v1/models/{id}`."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.model import check_name
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.json_response import json_response

router = APIRouter()


@router.get("/v1/models")
@requires("infer")
async def list_models(request: Request) -> Response:
    """The served model and, if it is installed, the embedding model."""
    context = server_context(request)
    data = [describe(context)]
    if context.engine.embedder.installed:
        data.append(describe_embedder(context))
    return json_response({"object": "list", "data": data})


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


def describe_embedder(context: ServerContext) -> dict[str, Any]:
    """OpenAI's model object of the embedding model, which `POST /v1/embeddings` takes."""
    return {
        "id": context.engine.embedder.name,
        "object": "model",
        "created": context.created,
        "owned_by": "pravaha",
    }
