"""What a response is gone on from, and how it is kept: `previous_response_id`, `conversation`, `store`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from app.server.calls.responses_answer import Keep
from app.server.calls.responses_input import input_items, item_not_found
from app.server.calls.responses_output import new_id
from app.server.calls.socket_history import SocketHistory
from app.server.process.context import ServerContext
from app.server.responses.store import ResponseStore
from app.server.wire.errors import bad_request
from app.server.wire.responses_schemas import InputFields, ResponseRequest

Result = TypeVar("Result")

_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
_TEXT_TYPES = {"assistant": "output_text"}


@dataclass(frozen=True, slots=True)
class KeptInput:
    """What a model is to read of a request.

    Attributes:
        history: items that the server has kept.
        new: items of the request, references resolved.
    """

    history: Sequence[Mapping[str, Any]]
    new: Sequence[Mapping[str, Any]]


async def in_store(context: ServerContext, ask: Callable[[ResponseStore], Result]) -> Result:
    """Call a method of the store off the event loop."""
    return await asyncio.to_thread(ask, context.responses)


async def kept_input(
    context: ServerContext, body: InputFields, local: SocketHistory | None = None
) -> KeptInput:
    """The items of a request and those before them.

    Args:
        context: the server.
        body: the request.
        local: what its connection has in memory.

    Raises:
        ApiError: 400 or 404 for what is not kept.
    """
    previous, conversation = body.previous_response_id, body.conversation_id
    if previous is not None and conversation is not None:
        raise bad_request(
            "`previous_response_id` and `conversation` exclude each other.", param="conversation"
        )
    history: Sequence[Mapping[str, Any]] = ()
    if previous is not None:
        running = context.running_responses.get(previous)
        if running is not None and not running.ended:
            raise bad_request(
                f"The response {previous[:80]!r} has not ended yet.", param="previous_response_id"
            )
        in_memory = None if local is None else local.items(previous)
        if in_memory is not None:
            history = in_memory
        else:
            history = await in_store(context, lambda it: it.history(previous))
    elif conversation is not None:
        history = await in_store(context, lambda it: it.conversation_items(conversation))
    items = input_items(body.input)
    if not any(is_reference(one) for one in items):
        return KeptInput(history, items)
    return KeptInput(history, await in_store(context, lambda it: _resolved(it, items)))


def is_reference(item: Mapping[str, Any]) -> bool:
    """Whether an item stands for one that is kept."""
    return item.get("type") == "item_reference" or item.keys() == {"id"}


def _resolved(store: ResponseStore, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    resolved = []
    for index, item in enumerate(items):
        if is_reference(item):
            item_id = item.get("id")
            if not isinstance(item_id, str):
                raise bad_request(f"`input[{index}].id` is missing.", param=f"input[{index}].id")
            found = store.item(item_id)
            if found is None:
                raise item_not_found(item_id, f"input[{index}]")
            item = found
        resolved.append(item)
    return resolved


def kept_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of a request as it is kept and given back: with an id, and content in parts."""
    kind = item.get("type") or "message"
    given = item.get("id")
    kept: dict[str, Any] = {
        **item,
        "id": given if isinstance(given, str) and given else new_id(_PREFIXES.get(kind, "item")),
        "type": kind,
    }
    if kind == "message":
        kept.setdefault("status", "completed")
        content = item.get("content")
        if isinstance(content, str):
            text_type = _TEXT_TYPES.get(item.get("role") or "", "input_text")
            part: dict[str, Any] = {"type": text_type, "text": content}
            kept["content"] = [part | ({"annotations": []} if text_type == "output_text" else {})]
    return kept


def keeping(
    context: ServerContext,
    body: ResponseRequest,
    kept: KeptInput,
    local: SocketHistory | None = None,
) -> Keep:
    """What keeps a response: in the store, unless `store` is false; in its conversation; in `local`."""
    inputs = [kept_item(one) for one in kept.new]
    conversation = body.conversation_id
    is_added = False

    async def keep(response: dict[str, Any]) -> None:
        nonlocal is_added
        if body.is_stored and is_added:
            await in_store(context, lambda it: it.update_response(response))
        elif body.is_stored:
            await in_store(context, lambda it: it.add_response(response, inputs))
        is_added = True
        if response["status"] not in ("completed", "incomplete"):
            return
        items = [*inputs, *response["output"]]
        if local is not None:
            local.keep(response["id"], [*kept.history, *items])
        if conversation is not None:
            await in_store(context, lambda it: it.extend_conversation(conversation, items))

    return keep
