"""`GET /v1/models` and `GET /v1/models/{id}`.

Each model has the members of OpenAI's and of Anthropic's clients, and so has the list.
"""

from datetime import UTC, datetime
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
    ids = [one["id"] for one in data]
    pages = {"first_id": ids[0], "last_id": ids[-1], "has_more": False}
    return json_response({"object": "list", "data": data, **pages})


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
    """The model object of the served model, with context length (vLLM's name for it) and status."""
    snapshot = context.engine.snapshot()
    info = snapshot.model
    length = info and info.context_length
    return {
        **_model(context, context.engine.config.name),
        "status": snapshot.state.value,
        "max_model_len": length,
        "max_input_tokens": length,
        "max_tokens": length,
        "details": info,
    }


def describe_embedder(context: ServerContext) -> dict[str, Any]:
    """The model object of the embedding model, which `POST /v1/embeddings` takes."""
    return _model(context, context.engine.embedder.name)


def _model(context: ServerContext, name: str) -> dict[str, Any]:
    """A model object: OpenAI's members, then Anthropic's."""
    return {
        "id": name,
        "object": "model",
        "created": context.created,
        "owned_by": "pravaha",
        "type": "model",
        "display_name": name,
        "created_at": datetime.fromtimestamp(context.created, UTC).isoformat(),
        "lifecycle": "active",
    }
