"""A Messages request as a chat request, which the model answers."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.server.calls.messages_history import ChatHistory
from app.server.calls.messages_tools import offered_tools
from app.server.process.context import ServerContext
from app.server.process.sessions import session_of_user
from app.server.wire.errors import ApiError, bad_request, from_validation
from app.server.wire.messages_schemas import (
    MessagesRequest,
    OutputConfig,
    PromptFields,
    ToolResultBlock,
)
from app.server.wire.schemas import ChatCompletionRequest

_EFFORTS = {"xhigh": "high", "max": "high"}
"""Efforts that no chat template of an open model knows."""

_FIELDS = {"response_format": "output_config.format", "stop": "stop_sequences"}
"""Fields of a chat request, and their names in the API's."""


@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """A Messages request in the form of chat completions.

    Attributes:
        body: the chat request.
        ignored: paths of the blocks that have no effect.
        skipped_tools: types of the tools that have none.
        places: paths in `body`, and the paths in the request that they come from.
    """

    body: ChatCompletionRequest
    ignored: list[str]
    skipped_tools: list[str]
    places: dict[str, str]


@contextmanager
def named_as_given(places: Mapping[str, str]) -> Iterator[None]:
    """Let errors that name a field of the chat request name that of the given one.

    Args:
        places: paths in the chat request, and those in the given one.

    Raises:
        ApiError: in place of one whose field has another name there.
    """
    try:
        yield
    except ApiError as error:
        found = [given for place, given in places.items() if _is_in(error.param, place)]
        if not found:
            raise
        raise error.of_field(found[0], f"{found[0]}: {error.detail}") from error


def _is_in(param: str | None, place: str) -> bool:
    """Whether a path is that of a place, or of something in it."""
    return param is not None and (param == place or param.startswith((f"{place}.", f"{place}[")))


def translated(
    body: PromptFields, model: str, documents: Mapping[str, str] | None = None
) -> TranslatedRequest:
    """The chat request of a Messages request, or of one that only counts its tokens.

    Args:
        body: the request.
        model: the name of the model that answers.
        documents: the texts of the files in it, by the paths of their sources.

    Raises:
        ApiError: 400 that names a field.
    """
    _refuse_threads(body)
    history, offered = ChatHistory(body, documents), offered_tools(body)
    fields: dict[str, Any] = {
        "model": model,
        "messages": history.messages,
        **offered.fields(body),
        **_reasoning(body),
        **_format(body),
    }
    if isinstance(body, MessagesRequest):
        fields |= {
            "max_tokens": body.max_tokens or 1,
            "stop": body.stop_sequences,
            "temperature": body.temperature,
            "top_p": body.top_p,
            "top_k": body.top_k,
            "seed": body.seed,
            "cache_salt": body.cache_salt,
            "stream": body.stream,
            "session_id": session_of_user((body.metadata or {}).get("user_id")),
        }
    tools = {f"tools[{at}]": f"tools[{given}]" for at, given in enumerate(offered.tools)}
    places = _FIELDS | tools | history.places
    with named_as_given(places):
        chat = _validated(fields)
    if isinstance(body, MessagesRequest) and body.max_tokens == 0:
        # Only reads the prompt, so that the next request finds it in the cache; a chat cannot ask for that.
        chat = chat.model_copy(update={"max_tokens": 0})
    return TranslatedRequest(chat, history.ignored, offered.skipped, places)


def _validated(fields: dict[str, Any]) -> ChatCompletionRequest:
    try:
        return ChatCompletionRequest.model_validate(fields)
    except ValidationError as error:
        raise from_validation(error.errors()) from error


async def answering_model(context: ServerContext, name: str) -> str:
    """The name of the model that answers a request for `name`: the served one, whatever it is called.

    Clients of Anthropic's API ask for its models, in the background for others than in the foreground, and
    stop if one is missing. A name that is not served may be that of a model on disk.
    """
    if context.models.find(name) is not None:
        return name
    names = await asyncio.to_thread(context.models.names)
    return name if name in names else context.models.primary.name


def asks_for_caching(body: PromptFields) -> bool:
    """Whether `cache_control` stands anywhere in the request."""
    blocks = [*body.system, *(block for message in body.messages for block in message.content)]
    for block in tuple(blocks):
        if isinstance(block, ToolResultBlock) and isinstance(block.content, list):
            blocks += block.content
    return any(one.cache_control is not None for one in (body, *(body.tools or ()), *blocks))


def _refuse_threads(body: PromptFields) -> None:
    """Refuse to keep a conversation here, in the words at which clients send all of it with each request."""
    if body.thread is None:
        return
    raise ApiError(
        400,
        "This server keeps no threads: send the whole conversation with each request.",
        param="thread",
        details={"error_code": "thread_unsupported_request", "unsupported": ["threads"]},
    )


def _reasoning(body: PromptFields) -> dict[str, Any]:
    """How much to think; a type of `thinking` other than these two leaves it to the model."""
    fields: dict[str, Any] = {}
    effort = None if body.output_config is None else body.output_config.effort
    if effort is not None:
        fields["reasoning_effort"] = _EFFORTS.get(effort, effort)
    thinking = body.thinking
    if thinking is not None and thinking.type in ("enabled", "disabled"):
        fields["enable_thinking"] = thinking.type == "enabled"
        if thinking.type == "enabled" and thinking.budget_tokens is not None:
            fields["thinking_budget"] = thinking.budget_tokens
    return fields


def _format(body: PromptFields) -> dict[str, Any]:
    config = body.output_config or OutputConfig()
    if config.format is not None and body.output_format is not None:
        raise bad_request(
            "`output_format` is the older name of `output_config.format`; give only one.",
            param="output_format",
        )
    given = config.format or body.output_format
    if given is None:
        return {}
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": given.schema_}}}
