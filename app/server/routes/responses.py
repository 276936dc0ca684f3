"""OpenAI's Responses API: `/v1/responses`."""

import time
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.server.calls.chat_turn import ChatTurn
from app.server.calls.compacting import summarize
from app.server.calls.event_stream import SERVER_SENT_EVENTS, EventStream
from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.item_lists import Include, item_list
from app.server.calls.mcp_turn import McpTurn
from app.server.calls.responses_answer import ResponseAnswer, response_usage
from app.server.calls.responses_call import begin_response, find_mcp
from app.server.calls.responses_files import with_files
from app.server.calls.responses_input import chat_input
from app.server.calls.responses_kept import in_store, keeping, kept_input
from app.server.calls.responses_output import new_id
from app.server.calls.responses_request import OwnNames, chat_request
from app.server.calls.responses_tools import read_tools
from app.server.calls.retrieval import DEFAULT_PAGE, Cursor, Limit, Order
from app.server.calls.socket_history import socket_history
from app.server.calls.structured import add_not_enforced
from app.server.calls.turn_prompt import count_prompt_tokens
from app.server.calls.uploads import refuse_other_sites
from app.server.middleware.auth import requires
from app.server.process.context import ServerContext, server_context
from app.server.wire.answers.base import Deleted, PageAnswer
from app.server.wire.answers.responses import (
    CompactedResponse,
    ResponseEvent,
    ResponseInputTokens,
    ResponseItem,
    ResponseObject,
)
from app.server.wire.compaction import compaction_item
from app.server.wire.described import answers
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.fields import header_value
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.responses_schemas import (
    CompactRequest,
    InputTokensRequest,
    ResponseRequest,
)

router = APIRouter(route_class=JsonRoute)

ResponsePath = Annotated[str, Path(max_length=128)]


@router.post("/v1/responses")
@requires("infer")
@answers(ResponseObject, events=ResponseEvent)
async def create_response(body: ResponseRequest, request: Request) -> Response:
    """Answer, streamed or whole, or in the background."""
    context = server_context(request)
    if body.background and not body.is_stored:
        raise bad_request("`background` needs `store`: the answer is read later.", param="store")
    tools = read_tools(body.tools or ())
    access = await find_mcp(context, tools)
    local = socket_history(request)
    kept = await kept_input(context, body, local)
    servers = {} if access is None else access.names
    read = await with_files(request, context, kept)
    chat = chat_input(body.instructions, read.history, read.new, servers)
    check_extra_fields(request, body, ignored=[*tools.ignored, *chat.ignored])
    request.state.skipped_tools = header_value(tools.skipped)
    keep = keeping(context, body, kept, local)
    begun = await begin_response(request, context, body, tools, chat, keep, access)
    add_not_enforced(request, tools.not_enforced)
    answer, turn = begun.answer, begun.turn
    if isinstance(turn, ApiError):
        return EventStream(answer.refused(turn), context, AsyncExitStack())
    if body.background:
        return await _in_background(context, answer, turn, is_stream=bool(body.stream))
    if body.stream:
        form = replace(SERVER_SENT_EVENTS, error=answer.failure)
        return EventStream(answer.events(turn), context, turn.resources, form=form)
    return json_response(await answer.whole(turn, request, context))


async def _in_background(
    context: ServerContext, answer: ResponseAnswer, turn: ChatTurn | McpTurn, *, is_stream: bool
) -> Response:
    """Start a response that goes on without its client."""
    async with turn.resources as resources:
        await answer.keep()
        queued = answer.response()
        turn.resources = resources.pop_all()  # what later rounds add is closed with it
        running = context.running_responses.start(
            answer, answer.events(turn), turn.resources, answer.keep
        )
    if is_stream:
        return EventStream(running.read(), context, AsyncExitStack())
    return json_response(queued)


@router.post("/v1/responses/input_tokens")
@requires("infer")
@answers(ResponseInputTokens)
async def count_input_tokens(body: InputTokensRequest, request: Request) -> Response:
    """How many tokens the prompt of a response would have; nothing is generated."""
    context = server_context(request)
    tools = read_tools(body.tools or ())
    kept = await with_files(request, context, await kept_input(context, body))
    chat = chat_input(body.instructions, kept.history, kept.new)
    check_extra_fields(request, body, ignored=chat.ignored)
    # Tools of MCP servers are not counted: they would have to be connected.
    request.state.skipped_tools = header_value([*tools.skipped, *("mcp" for _ in tools.mcp)])
    wanted = chat_request(body, chat, tools)
    with OwnNames(chat.paths, tools.paths).in_errors():
        count = await count_prompt_tokens(request, context, wanted)
    return json_response({"object": "response.input_tokens", "input_tokens": count})


@router.post("/v1/responses/compact")
@requires("infer")
@answers(CompactedResponse)
async def compact_response(body: CompactRequest, request: Request) -> Response:
    """An item that stands for a conversation: its summary, which the client sends in its place."""
    context = server_context(request)
    kept = await with_files(request, context, await kept_input(context, body))
    chat = chat_input(body.instructions, kept.history, kept.new)
    check_extra_fields(request, body, ignored=chat.ignored)
    if not kept.history and not kept.new:
        raise bad_request("`input` is empty: there is nothing to summarize.", param="input")
    summary, counts = await summarize(request, context, body.model, chat)
    return json_response(
        {
            "id": new_id("resp"),
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [compaction_item(summary)],
            "usage": response_usage(counts),
        }
    )


@router.get("/v1/responses/{response_id}")
@requires("infer")
@answers(ResponseObject, events=ResponseEvent)
async def retrieve_response(
    response_id: ResponsePath,
    request: Request,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    include: Include = None,
    include_obfuscation: bool | None = None,
) -> Response:
    """A response; with `stream`, the events of one in the background, after a number.

    `include_obfuscation` has no effect: streams are not padded.
    """
    context = server_context(request)
    if include_obfuscation is not None:
        request.state.without_effect = "include_obfuscation"
    running = context.running_responses.get(response_id)
    if stream:
        if running is None:
            await in_store(context, lambda it: it.response(response_id))  # else a 404
            raise bad_request(
                "Only the events of a response in the background can be read again, "
                "and for a while after its end.",
                param="stream",
            )
        after = -1 if starting_after is None else starting_after
        running.check(after)
        return EventStream(running.read(after), context, AsyncExitStack())
    return json_response(await _present(context, response_id))


async def _present(context: ServerContext, response_id: str) -> dict[str, Any]:
    """A response as it is now.

    Raises:
        ApiError: 404.
    """
    running = context.running_responses.get(response_id)
    if running is not None:
        return running.answer.response()
    response = await in_store(context, lambda it: it.response(response_id))
    if response["status"] in ("queued", "in_progress"):  # of a process that is gone
        message = "The server was restarted while this response was generated."
        response |= {"status": "failed", "error": {"code": "server_error", "message": message}}
    return response


@router.delete("/v1/responses/{response_id}")
@requires("infer")
@answers(Deleted)
async def delete_response(response_id: ResponsePath, request: Request) -> Response:
    """Delete a response; one that runs is ended."""
    context = server_context(request)
    await context.running_responses.discard(response_id)
    await in_store(context, lambda it: it.delete_response(response_id))
    return json_response({"id": response_id, "object": "response", "deleted": True})


@requires("infer")
@answers(ResponseObject)
async def cancel_response(response_id: ResponsePath, request: Request) -> Response:
    """End a response in the background; one that has ended stays as it is."""
    refuse_other_sites(request)
    context = server_context(request)
    running = context.running_responses.get(response_id)
    if running is not None:
        await running.cancel()
    response = await _present(context, response_id)
    if not response["background"]:
        raise bad_request(
            "Only a response in the background can be cancelled: another one ends when its client leaves.",
            param="response_id",
        )
    return json_response(response)


# The official client sends no body here, which `JsonRoute` would refuse.
router.add_api_route(
    "/v1/responses/{response_id}/cancel",
    cancel_response,
    methods=["POST"],
    route_class_override=APIRoute,
)


@router.get("/v1/responses/{response_id}/input_items")
@requires("infer")
@answers(PageAnswer[ResponseItem])
async def list_input_items(
    response_id: ResponsePath,
    request: Request,
    limit: Limit = DEFAULT_PAGE,
    order: Order = "desc",
    after: Cursor = None,
    include: Include = None,
) -> Response:
    """The items of a response's own input, newest first, in pages."""
    context = server_context(request)
    page = await in_store(
        context,
        lambda it: it.items(response_id, "input", limit=limit, order=order, after=after),
    )
    return json_response(item_list(page))
