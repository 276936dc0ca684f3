"""`POST /v1/embeddings`: vectors of texts, computed by the embedding model."""

import asyncio
import base64
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.embedding import embedded
from app.server.calls.extra_fields import check_extra_fields
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.chat import EmbeddingList
from app.server.wire.described import answers
from app.server.wire.errors import ApiError
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import EmbeddingRequest
from engine.api.embeddings import Embeddings

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/embeddings")
@requires("infer")
@answers(EmbeddingList)
async def create_embeddings(body: EmbeddingRequest, request: Request) -> Response:
    """One vector for each text, normalised to length 1."""
    context = server_context(request)
    check_extra_fields(request, body)
    name = context.models.embedder.name
    if context.models.resolved(body.model) != name:
        raise ApiError(
            404,
            f"There is no embedding model {body.model[:80]!r} here; this server has {name!r}.",
            param="model",
            code="model_not_found",
        )
    embeddings = await embedded(
        request,
        context,
        body.input,
        truncate=body.truncate_prompt_tokens,
        dimensions=body.dimensions,
        keep_alive_s=body.keep_alive,
    )
    # A list of floats is slow to build for a thousand texts: do it off the event loop.
    return await asyncio.to_thread(_answer, embeddings, body)


def _answer(embeddings: Embeddings, body: EmbeddingRequest) -> Response:
    return json_response(
        {
            "object": "list",
            "model": embeddings.model,
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": _encode_vector(vector, body.encoding_format),
                }
                for index, vector in enumerate(embeddings.vectors)
            ],
            "usage": {"prompt_tokens": embeddings.tokens, "total_tokens": embeddings.tokens},
        }
    )


def _encode_vector(vector: Any, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    numbers: list[float] = vector.tolist()
    return numbers
