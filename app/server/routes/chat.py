"""`POST /v1/chat/completions`."""

from contextlib import AsyncExitStack
from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.chat_answer import ChatAnswer
from app.server.calls.chat_form import chat_form
from app.server.calls.chat_images import read_images
from app.server.calls.chat_sources import find_sources, with_sources
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.generation import begin, finish
from app.server.calls.guarding import CallGuard
from app.server.calls.model import check_length, loaded_model
from app.server.calls.not_found_answer import NotFoundAnswer
from app.server.calls.prompts import chat_prompt
from app.server.calls.resumable import stream_response
from app.server.calls.sampling import chat_sampling
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.image import PlacedImage
from engine.retrieval.answering.answerer import DEFAULT_MAX_TOKENS

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/chat/completions")
@requires("infer")
async def create_chat_completion(body: ChatCompletionRequest, request: Request) -> Response:
    """Continue a conversation, streamed or whole."""
    context = server_context(request)
    check_extra_fields(request, body)
    model = loaded_model(context, body.model)
    sampling = chat_sampling(body, model.info)
    guard = CallGuard(context, body)
    images = await read_images(request, context, body, model)
    messages = body.messages
    if images is not None:
        messages = images.in_messages(messages, small=model.info.is_small)
        request.state.images = images.way
    sources = await find_sources(request, context, body, messages, model, images)
    if sources is not None:
        if not sources.numbered:
            return await _not_found(context, NotFoundAnswer(body, model, sources, images), body)
        messages = with_sources(messages, sources.sources, model)
        sampling = replace(
            sampling,
            grammar=sampling.grammar or sources.grammar,
            max_tokens=DEFAULT_MAX_TOKENS if body.token_limit is None else sampling.max_tokens,
        )
    chat = await chat_prompt(model, messages, chat_form(body), check=guard.check_value)
    request.state.guardrails = guard.header
    prompt, placed = chat.ids, tuple[PlacedImage, ...]()
    if images is not None:
        prompt, placed = await images.placed(context, prompt)
    check_length(prompt, model.info, param="messages")
    generation = await begin(
        request,
        context,
        body,
        [prompt],
        sampling,
        guard,
        continued_tokens=chat.continued_tokens,
        images=placed,
    )
    answer = ChatAnswer(body, model, generation, sources, images)
    if body.stream:
        return await stream_response(context, body, answer.events(), generation.resources)
    outputs = await finish(request, context, generation)
    return json_response(await answer.response_body(outputs))


async def _not_found(
    context: ServerContext, answer: NotFoundAnswer, body: ChatCompletionRequest
) -> Response:
    if body.stream:
        return await stream_response(context, body, answer.events(), AsyncExitStack())
    return json_response(answer.response_body())
