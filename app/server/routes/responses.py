"""OpenAI's Responses API: `/v1/responses`."""

from contextlib import AsyncExitStack

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.event_stream import EventStream
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.responses_call import begin_response
from app.server.calls.responses_input import chat_input, input_items
from app.server.calls.responses_tools import read_tools
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.fields import header_value
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.responses_schemas import ResponseRequest

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/responses")
@requires("infer")
async def create_response(body: ResponseRequest, request: Request) -> Response:
    """Answer, streamed or whole."""
    context = server_context(request)
    tools = read_tools(body.tools or ())
    new = input_items(body.input)
    chat = chat_input(body.instructions, (), new)
    check_extra_fields(request, body, ignored=chat.ignored)
    request.state.skipped_tools = header_value(tools.skipped)
    request.state.not_enforced = header_value(tools.not_enforced)
    begun = await begin_response(request, context, body, tools, chat)
    answer, turn = begun.answer, begun.turn
    if turn is None:
        return EventStream(answer.refused(begun.error), context, AsyncExitStack())
    if body.stream:
        return EventStream(answer.events(turn), context, turn.resources, error_event=answer.failure)
    return json_response(await answer.whole(turn, request, context))
