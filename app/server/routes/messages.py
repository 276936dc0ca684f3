"""Anthropic's Messages API: `POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.chat_turn import begin_turn
from app.server.calls.event_stream import EventStream, StreamForm
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.messages_answer import PING, MessagesAnswer
from app.server.calls.messages_documents import read_documents
from app.server.calls.messages_request import (
    TranslatedRequest,
    answering_model,
    named_as_given,
    translated,
)
from app.server.calls.turn_prompt import count_prompt_tokens
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire import anthropic_errors
from app.server.wire.answers.messages import MessageAnswer, MessageEvent, MessageTokens
from app.server.wire.described import answers
from app.server.wire.errors import ApiError
from app.server.wire.fields import header_value
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.messages_schemas import CountTokensRequest, MessagesRequest, PromptFields
from app.server.wire.sse import named_event

MODEL_HEADER = "x-pravaha-model"
"""The model that has answered, whatever the request called it."""

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/messages")
@requires("infer")
@answers(MessageAnswer, events=MessageEvent)
async def create_message(body: MessagesRequest, request: Request) -> Response:
    """Continue a conversation, streamed or whole."""
    context = server_context(request)
    given = await _translated(request, context, body)
    with named_as_given(given.places):
        turn = await begin_turn(request, context, given.body)
    answer = MessagesAnswer(turn, body)
    response: Response
    if body.stream:
        request_id: str = request.state.request_id
        form = StreamForm(
            "text/event-stream", lambda: PING, lambda error: _error_event(error, request_id)
        )
        response = EventStream(answer.events(), context, turn.resources, form=form)
    else:
        (choice,) = await turn.answer(request, context)
        response = json_response(answer.response_body(choice))
    return _with_model(response, given)


@router.post("/v1/messages/count_tokens")
@requires("infer")
@answers(MessageTokens)
async def count_tokens(body: CountTokensRequest, request: Request) -> Response:
    """The tokens of the prompt that a message with this body would have."""
    context = server_context(request)
    given = await _translated(request, context, body)
    with named_as_given(given.places):
        count = await count_prompt_tokens(request, context, given.body)
    return _with_model(json_response({"input_tokens": count}), given)


async def _translated(
    request: Request, context: ServerContext, body: PromptFields
) -> TranslatedRequest:
    """The request as one of a chat; the response lists what of it has no effect."""
    model = await answering_model(context, body.model)
    given = translated(body, model, await read_documents(request, context, body))
    check_extra_fields(request, body, ignored=given.ignored)
    if given.skipped_tools:
        request.state.skipped_tools = header_value(given.skipped_tools)
    return given


def _with_model(response: Response, given: TranslatedRequest) -> Response:
    response.headers[MODEL_HEADER] = header_value([given.body.model])
    return response


def _error_event(error: ApiError, request_id: str) -> bytes:
    """The event that stands for an HTTP error once the stream has begun."""
    status = anthropic_errors.status_of(error.status_code)
    return named_event(
        anthropic_errors.error_body(
            status, error.detail, details=error.details, request_id=request_id
        )
    )
