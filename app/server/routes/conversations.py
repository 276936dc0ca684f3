"""OpenAI's Conversations API: `/v1/conversations`, the items that responses of one conversation follow."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from app.server.calls.extra_fields import check_extra_fields
from app.server.calls.item_lists import Include, item_list
from app.server.calls.responses_input import chat_input
from app.server.calls.responses_kept import in_store, kept_item
from app.server.calls.responses_output import new_id
from app.server.calls.retrieval import DEFAULT_PAGE, Cursor, Limit, Order
from app.server.middleware.auth import requires
from app.server.process.context import server_context
from app.server.responses.store import ItemPage, ResponseStore
from app.server.wire.answers.base import Deleted, PageAnswer
from app.server.wire.answers.responses import ConversationObject, ResponseItem
from app.server.wire.described import answers
from app.server.wire.errors import ApiError
from app.server.wire.json_body import JsonRoute
from app.server.wire.json_response import json_response
from app.server.wire.responses_schemas import (
    CreateConversation,
    CreateConversationItems,
    UpdateConversation,
)

router = APIRouter(route_class=JsonRoute)

ConversationPath = Annotated[str, Path(max_length=128)]
ItemPath = Annotated[str, Path(max_length=128)]


@router.post("/v1/conversations")
@requires("infer")
@answers(ConversationObject)
async def create_conversation(body: CreateConversation, request: Request) -> Response:
    """A new conversation, with items if there are any already."""
    items = _checked(body.items or [])
    check_extra_fields(request, body)
    conversation_id = new_id("conv")
    return json_response(
        await in_store(
            server_context(request),
            lambda it: it.add_conversation(conversation_id, body.metadata or {}, items),
        )
    )


@router.get("/v1/conversations/{conversation_id}")
@requires("infer")
@answers(ConversationObject)
async def retrieve_conversation(conversation_id: ConversationPath, request: Request) -> Response:
    """A conversation, without its items."""
    context = server_context(request)
    return json_response(await in_store(context, lambda it: it.conversation(conversation_id)))


@router.post("/v1/conversations/{conversation_id}")
@requires("infer")
@answers(ConversationObject)
async def update_conversation(
    conversation_id: ConversationPath, body: UpdateConversation, request: Request
) -> Response:
    """Replace the metadata."""
    check_extra_fields(request, body)

    def update(store: ResponseStore) -> dict[str, Any]:
        if body.metadata is None:
            return store.conversation(conversation_id)
        return store.update_conversation(conversation_id, body.metadata)

    return json_response(await in_store(server_context(request), update))


@router.delete("/v1/conversations/{conversation_id}")
@requires("infer")
@answers(Deleted)
async def delete_conversation(conversation_id: ConversationPath, request: Request) -> Response:
    """Delete a conversation with its items; responses in it stay."""
    context = server_context(request)
    await in_store(context, lambda it: it.delete_conversation(conversation_id))
    return json_response({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


@router.post("/v1/conversations/{conversation_id}/items")
@requires("infer")
@answers(PageAnswer[ResponseItem])
async def create_items(
    conversation_id: ConversationPath,
    body: CreateConversationItems,
    request: Request,
    include: Include = None,
) -> Response:
    """Append items."""
    items = _checked(body.items)
    check_extra_fields(request, body)
    context = server_context(request)
    await in_store(context, lambda it: it.extend_conversation(conversation_id, items))
    return json_response(item_list(ItemPage(items, has_more=False)))


@router.get("/v1/conversations/{conversation_id}/items")
@requires("infer")
@answers(PageAnswer[ResponseItem])
async def list_items(
    conversation_id: ConversationPath,
    request: Request,
    limit: Limit = DEFAULT_PAGE,
    order: Order = "desc",
    after: Cursor = None,
    include: Include = None,
) -> Response:
    """The items, newest first, in pages."""
    context = server_context(request)
    page = await in_store(
        context,
        lambda it: it.items(conversation_id, "conversation", limit=limit, order=order, after=after),
    )
    return json_response(item_list(page))


@router.get("/v1/conversations/{conversation_id}/items/{item_id}")
@requires("infer")
@answers(ResponseItem)
async def retrieve_item(
    conversation_id: ConversationPath, item_id: ItemPath, request: Request, include: Include = None
) -> Response:
    """One item."""
    context = server_context(request)
    return json_response(
        await in_store(context, lambda it: it.conversation_item(conversation_id, item_id))
    )


@router.delete("/v1/conversations/{conversation_id}/items/{item_id}")
@requires("infer")
@answers(ConversationObject)
async def delete_item(
    conversation_id: ConversationPath, item_id: ItemPath, request: Request
) -> Response:
    """Delete one item; the conversation is the answer."""
    context = server_context(request)
    return json_response(
        await in_store(context, lambda it: it.delete_conversation_item(conversation_id, item_id))
    )


def _checked(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items as they are kept, each of a form that a model can read.

    Raises:
        ApiError: 400 that names the item.
    """
    try:
        chat_input(None, (), items)
    except ApiError as error:
        param = error.param and error.param.replace("input[", "items[", 1)
        raise error.of_field(param, error.detail.replace("`input[", "`items[")) from error
    return [kept_item(one) for one in items]
