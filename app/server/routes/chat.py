"""`POST /v1/chat/completions`."""

from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.server.calls.chat_answer import ChatAnswer
from app.server.calls.chat_turn import ChatTurn, begin_turn
from app.server.calls.event_stream import SERVER_SENT_EVENTS
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.loop_turn import LoopTurn, begin_loop
from app.server.calls.prompt_progress import PromptProgress
from app.server.calls.resumable import stream_response
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.wire.answers.chat import ChatCompletion, ChatCompletionChunk, ChatControlled
from app.server.wire.described import answers
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.schemas import ChatCompletionRequest, ChatControlRequest

router = APIRouter(route_class=JsonRoute)


@router.post("/v1/chat/completions")
@requires("infer")
@answers(ChatCompletion, events=ChatCompletionChunk)
async def create_chat_completion(body: ChatCompletionRequest, request: Request) -> Response:
    """Continue a conversation, streamed or whole."""
    context = server_context(request)
    check_extra_fields(request, body)
    if body.tool_loop is None:
        turn: ChatTurn | LoopTurn = await begin_turn(request, context, body)
    else:
        turn = await begin_loop(request, context, body, body.tool_loop, LoopTurn)
    answer = ChatAnswer(turn)
    if body.stream:
        form = replace(SERVER_SENT_EVENTS, keep_alive=PromptProgress(turn).keep_alive)
        return await stream_response(context, body, answer.events(), turn.resources, form=form)
    return json_response(answer.response_body(await turn.answer(request, context)))


@router.post("/v1/chat/completions/control")
@requires("infer")
@answers(ChatControlled)
async def control_chat_completion(body: ChatControlRequest, request: Request) -> Response:
    """End the reasoning of a running completion (llama.cpp's endpoint); `success` says whether it reasoned.

    Only a request that had `reasoning_control` can be told.
    """
    context = server_context(request)
    check_extra_fields(request, body)
    turn = context.running_turns.get(body.id)
    success = turn is not None and await turn.end_reasoning()
    return json_response({"id": body.id, "action": body.action, "success": success})
