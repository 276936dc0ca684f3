"""Ollama's `/api/chat`, `/api/generate`, `/api/embed` and `/api/embeddings`."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.chat_turn import ChatTurn, begin_turn
from app.server.calls.embedding import embedded
from app.server.calls.event_stream import EventStream, StreamForm
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.model import loaded_model
from app.server.calls.ollama_answer import (
    OllamaAnswer,
    Payload,
    chat_payload,
    generate_payload,
    line,
)
from app.server.calls.ollama_completion import OllamaCompletion, begin_ollama_completion
from app.server.calls.ollama_request import (
    chat_request,
    generate_request,
    model_not_found,
    plain_name,
    served_name,
)
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.ollama import (
    OllamaChatLine,
    OllamaEmbedding,
    OllamaEmbeddings,
    OllamaGenerateLine,
)
from app.server.wire.described import NDJSON, answers
from app.server.wire.errors import bad_request
from app.server.wire.instant import rfc3339
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.ollama_errors import error_line
from app.server.wire.ollama_schemas import (
    OllamaChatRequest,
    OllamaEmbedRequest,
    OllamaGenerateRequest,
    OllamaGeneration,
)
from engine.api.embeddings import Embeddings
from engine.embedding.text_encoder import TRAINED_TOKENS

router = APIRouter(route_class=JsonRoute)


@router.post("/api/chat")
@requires("infer")
@answers(OllamaChatLine, lines=OllamaChatLine)
async def chat(body: OllamaChatRequest, request: Request) -> Response:
    """Continue a conversation; without messages, only see to it that the model is loaded."""
    context = server_context(request)
    check_extra_fields(request, body)
    name = await asyncio.to_thread(served_name, context, body.model)
    if not body.messages:
        return await _loaded(context, body, name, chat_payload)
    turn = await begin_turn(request, context, chat_request(body, name))
    return await _answered(request, context, OllamaAnswer(turn, body.model, chat_payload), turn)


@router.post("/api/generate")
@requires("infer")
@answers(OllamaGenerateLine, lines=OllamaGenerateLine)
async def generate(body: OllamaGenerateRequest, request: Request) -> Response:
    """Answer a prompt; with `raw`, `suffix` or `context` the prompt is not a conversation of one turn."""
    context = server_context(request)
    check_extra_fields(request, body)
    name = await asyncio.to_thread(served_name, context, body.model)
    if not body.prompt and not body.images and not body.suffix:
        return await _loaded(context, body, name, generate_payload)
    if body.raw or body.suffix or body.context:
        completion = await begin_ollama_completion(request, context, body, name)
        return await _completed(request, context, body, completion)
    turn = await begin_turn(request, context, generate_request(body, name))
    answer = OllamaAnswer(turn, body.model, generate_payload, with_context=True)
    return await _answered(request, context, answer, turn)


async def _answered(
    request: Request, context: ServerContext, answer: OllamaAnswer, turn: ChatTurn
) -> Response:
    if turn.body.stream:
        form = StreamForm(NDJSON, answer.keep_alive, error_line)
        return EventStream(answer.lines(), context, turn.resources, form=form)
    async with turn.resources:
        (choice,) = await turn.answer(request, context)
    return json_response(answer.whole(choice))


async def _completed(
    request: Request,
    context: ServerContext,
    body: OllamaGenerateRequest,
    completion: OllamaCompletion,
) -> Response:
    if body.streams:
        form = StreamForm(NDJSON, completion.keep_alive, error_line)
        return EventStream(completion.lines(), context, completion.resources, form=form)
    return json_response(await completion.whole(request, context))


async def _loaded(
    context: ServerContext, body: OllamaGeneration, name: str, payload: Payload
) -> Response:
    """The answer to a request without a prompt, by which clients load a model, or unload it at once."""
    seconds = body.keep_alive
    unloads = seconds == 0
    if unloads:
        await asyncio.to_thread(context.models.set_keep_alive, name, 0.0)
    else:
        loaded_model(context, name, keep_alive_s=seconds)
    answer: dict[str, Any] = {
        "model": body.model,
        "created_at": rfc3339(datetime.now(UTC)),
        **payload("", "", ()),
        "done": True,
        "done_reason": "unload" if unloads else "load",
    }
    if body.streams:
        return Response(line(answer), media_type=NDJSON)
    return json_response(answer)


@router.post("/api/embed")
@requires("infer")
@answers(OllamaEmbeddings)
async def embed(body: OllamaEmbedRequest, request: Request) -> Response:
    """Vectors of texts, normalised to length 1."""
    context = server_context(request)
    check_extra_fields(request, body)
    began = time.monotonic_ns()
    texts = body.input or []
    found = await _embedded(request, context, body, texts) if texts else None
    answer: dict[str, Any] = {
        "model": body.model,
        "embeddings": [] if found is None else found.vectors,
        "total_duration": time.monotonic_ns() - began,
        "load_duration": 0,
        "prompt_eval_count": 0 if found is None else found.tokens,
    }
    return await asyncio.to_thread(json_response, answer)


@router.post("/api/embeddings")
@requires("infer")
@answers(OllamaEmbedding)
async def embeddings(body: OllamaEmbedRequest, request: Request) -> Response:
    """The vector of one text, in the older form."""
    context = server_context(request)
    check_extra_fields(request, body)
    if not body.prompt:
        return json_response({"embedding": []})
    found = await _embedded(request, context, body, [body.prompt])
    return json_response({"embedding": found.vectors[0].tolist()})


async def _embedded(
    request: Request, context: ServerContext, body: OllamaEmbedRequest, texts: list[str]
) -> Embeddings:
    """The vectors of texts; longer ones are cut unless `truncate` is false.

    Raises:
        ApiError: 404 for a model that does not embed.
    """
    embedder = context.models.embedder
    if plain_name(context.models.resolved(body.model)) != plain_name(embedder.name):
        raise model_not_found(body.model)
    if any(not text for text in texts):
        raise bad_request("`input` has an empty text.", param="input")
    return await embedded(
        request,
        context,
        texts,
        truncate=None if body.truncate is False else TRAINED_TOKENS,
        dimensions=body.dimensions,
        keep_alive_s=body.keep_alive,
    )
