"""Begins a response: what the model reads, its chat turn, and the answer that formats it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from app.server.calls.chat_turn import ChatTurn, begin_turn
from app.server.calls.model import loaded_model
from app.server.calls.responses_answer import Keep, ResponseAnswer
from app.server.calls.responses_input import ChatInput
from app.server.calls.responses_request import OwnNames, chat_request
from app.server.calls.responses_tools import ResponseTools
from app.server.calls.turn_prompt import count_prompt_tokens
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError
from app.server.wire.responses_schemas import ResponseRequest

_DROPPED_SHARE = 8
"""Of what may be left out, the part that each try leaves out."""


@dataclass(frozen=True, slots=True)
class BegunResponse:
    """A response and its turn, which runs; in place of the turn, why its prompt is too long."""

    answer: ResponseAnswer
    turn: ChatTurn | ApiError


async def begin_response(
    request: Request,
    context: ServerContext,
    body: ResponseRequest,
    tools: ResponseTools,
    chat: ChatInput,
    keep: Keep,
) -> BegunResponse:
    """Check a request and submit its turn.

    A prompt that is too long is no error here for a stream: agents read the reason from its last event.

    Args:
        request: the HTTP request.
        context: the server.
        body: its body.
        tools: its tools.
        chat: what the model reads.
        keep: keeps the response once it has ended.

    Raises:
        ApiError, ClientDisconnected, QueueFull, EngineUnavailable: as `begin_turn`.
    """
    answer = ResponseAnswer(body, tools, keep)
    if body.truncation == "auto":
        await _shorten(request, context, body, tools, chat)
    while True:
        wanted = chat_request(body, chat, tools)
        try:
            with OwnNames(chat.paths, tools.paths).in_errors():
                return BegunResponse(answer, await begin_turn(request, context, wanted))
        except ApiError as error:
            if error.code != "context_length_exceeded":
                raise
            if body.truncation != "auto" or not drop_oldest(chat):
                if body.stream and not body.background:
                    return BegunResponse(answer, error)
                raise


async def _shorten(
    request: Request,
    context: ServerContext,
    body: ResponseRequest,
    tools: ResponseTools,
    chat: ChatInput,
) -> None:
    """Leave out the oldest messages until the text of the others fits into the context.

    Only text is looked at: reading images and searching are work, and are done once, for what is left.
    """
    limit = loaded_model(context, body.model).info.context_length
    while True:
        texts = ChatInput([_only_text(one) for one in chat.messages], chat.paths)
        wanted = chat_request(body, texts, tools)
        with OwnNames(chat.paths, tools.paths).in_errors():
            count = await count_prompt_tokens(request, context, wanted)
        if count < limit or not drop_oldest(chat):
            return


def _only_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message without its images."""
    content = message["content"]
    if isinstance(content, str) or content is None:
        return dict(message)
    return {**message, "content": [part for part in content if part["type"] != "image_url"]}


def drop_oldest(chat: ChatInput) -> bool:
    """Leave out the oldest messages, but no instructions and not the last turn; False if there are no others.

    The results of calls that are left out go with them.
    """
    last_user = max((i for i, one in enumerate(chat.messages) if one["role"] == "user"), default=0)
    droppable = [
        i
        for i, one in enumerate(chat.messages[:last_user])
        if one["role"] not in ("system", "developer")
    ]
    if not droppable:
        return False
    gone = set(droppable[: max(1, len(droppable) // _DROPPED_SHARE)])
    for i in range(max(gone) + 1, last_user):  # results whose call is gone
        if chat.messages[i]["role"] != "tool":
            break
        gone.add(i)
    chat.messages[:] = [one for i, one in enumerate(chat.messages) if i not in gone]
    chat.paths[:] = [one for i, one in enumerate(chat.paths) if i not in gone]
    return True
