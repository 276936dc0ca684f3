"""`POST /v1/completions`: raw prompts, no chat template.

Control tokens in a prompt given as text are recognised, because clients of this endpoint apply the
template themselves. Put untrusted text into chat messages instead.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.completion import begin_completion
from app.server.calls.completion_answer import CompletionAnswer
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.generation import finish
from app.server.calls.resumable import stream_response
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.chat import TextCompletion, TextCompletionChunk
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import CompletionRequest

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/completions")
@requires("infer")
@answers(TextCompletion, events=TextCompletionChunk)
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Continue one or more prompts, streamed or whole."""
    context = server_context(request)
    check_extra_fields(request, body)
    model, generation = await begin_completion(request, context, body)
    answer = CompletionAnswer(body, model, generation)
    if body.stream:
        return await stream_response(context, body, answer.events(), generation.resources)
    return json_response(answer.response_body(await finish(request, context, generation)))
