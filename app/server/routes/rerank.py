"""`POST /v1/rerank`: documents in the order in which they fit a query, in Cohere's and Jina's shape."""

import uuid
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.embedding import with_embedder
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.reranking import rerank
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.chat import Reranking
from app.server.wire.described import answers
from app.server.wire.errors import ApiError
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.retrieval_schemas import RerankRequest

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/rerank")
@router.post("/rerank")
@requires("infer")
@answers(Reranking)
async def create_rerank(body: RerankRequest, request: Request) -> Response:
    """The documents with their scores, best first."""
    context = server_context(request)
    check_extra_fields(request, body)
    embedder = context.models.embedder
    if context.models.resolved(body.model) != embedder.name:
        raise ApiError(
            404,
            f"There is no reranking model {body.model[:80]!r} here; this server has {embedder.name!r}.",
            param="model",
            code="model_not_found",
        )
    texts = [one.text for one in body.documents]
    work = partial(rerank, embedder, body.query, texts)
    ranked = await with_embedder(request, context, work, keep_alive_s=body.keep_alive)
    order = sorted(range(len(texts)), key=lambda index: -ranked.scores[index])
    with_text = body.return_documents is not False
    return json_response(
        {
            "id": f"rerank-{uuid.uuid4().hex}",
            "object": "list",
            "model": embedder.name,
            "results": [
                _result(index, ranked.scores[index], texts[index] if with_text else None)
                for index in order[: body.top_n]
            ],
            "usage": {"prompt_tokens": ranked.tokens, "total_tokens": ranked.tokens},
        }
    )


def _result(index: int, score: float, text: str | None) -> dict[str, Any]:
    document = {} if text is None else {"document": {"text": text}}
    return {"index": index, "relevance_score": score, **document}
