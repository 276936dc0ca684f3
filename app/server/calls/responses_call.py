"""Begins a response: what the model reads, its chat turn, and the answer that formats it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request

from agents.api.errors import AgentError
from app.server.calls.chat_turn import ChatTurn, begin_turn
from app.server.calls.loop_turn import begin_loop
from app.server.calls.mcp_turn import McpTurn
from app.server.calls.model import loaded_model
from app.server.calls.response_socket import WARM_UP
from app.server.calls.responses_answer import Keep, ResponseAnswer
from app.server.calls.responses_input import ChatInput
from app.server.calls.responses_mcp import McpAccess, mcp_access
from app.server.calls.responses_request import OwnNames, chat_request
from app.server.calls.responses_tools import ResponseTools
from app.server.calls.turn_prompt import count_prompt_tokens
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.responses_schemas import ResponseRequest
from app.server.wire.schemas import ChatCompletionRequest
from app.server.wire.tool_schemas import ToolLoopBody
from engine.api.tools import ToolCall, ToolChoice

MAX_ROUNDS = 16
"""Answers of the model with calls of MCP servers in one response."""
_DROPPED_SHARE = 8
"""Of what may be left out, the part that each try leaves out."""


@dataclass(frozen=True, slots=True)
class BegunResponse:
    """A response and its turn, which runs; in place of the turn, why its prompt is too long."""

    answer: ResponseAnswer
    turn: ChatTurn | McpTurn | ApiError


async def begin_response(
    request: Request,
    context: ServerContext,
    body: ResponseRequest,
    tools: ResponseTools,
    chat: ChatInput,
    keep: Keep,
    access: McpAccess | None = None,
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
        access: the MCP servers that the model may use.

    Raises:
        ApiError, ClientDisconnected, QueueFull, EngineUnavailable: as `begin_turn`.
    """
    is_warm_up = bool(getattr(request.state, WARM_UP, False))
    answer = ResponseAnswer(body, tools, keep, is_warm_up=is_warm_up)
    if body.truncation == "auto":
        await _shorten(request, context, body, tools, chat)
    while True:
        wanted = chat_request(body, chat, tools)
        try:
            with OwnNames(chat.paths, tools.paths).in_errors():
                if is_warm_up:  # only reads the prompt, which a chat cannot ask for
                    wanted = wanted.model_copy(
                        update={"max_completion_tokens": 0, "tool_choice": None}
                    )
                elif access is not None:
                    turn = await _begin_mcp(request, context, body, wanted, chat, access)
                    return BegunResponse(answer, turn)
                return BegunResponse(answer, await begin_turn(request, context, wanted))
        except ApiError as error:
            if error.code != "context_length_exceeded":
                raise
            if body.truncation != "auto" or not drop_oldest(chat):
                if body.stream and not body.background:
                    return BegunResponse(answer, error)
                raise


async def find_mcp(context: ServerContext, tools: ResponseTools) -> McpAccess | None:
    """The MCP servers of a request; None for a request without any.

    Raises:
        ApiError: 400 for one that this server may not use.
    """
    if not tools.mcp:
        return None
    configured: Mapping[str, str] = {}
    if context.agents is not None:
        try:
            choices = await asyncio.to_thread(context.agents.tool_choices, "auto", None)
        except AgentError as error:
            raise bad_request(str(error), param=tools.mcp[0].path) from error
        configured = choices.mcp_servers
    return mcp_access(tools.mcp, configured)


async def _begin_mcp(
    request: Request,
    context: ServerContext,
    body: ResponseRequest,
    wanted: ChatCompletionRequest,
    chat: ChatInput,
    access: McpAccess,
) -> McpTurn:
    """Begin a turn in which this server calls tools of MCP servers.

    Raises:
        ApiError: as `begin_loop`.
    """
    if wanted.retrieval is not None:
        raise bad_request(
            "Tools of the types `file_search` and `mcp` exclude each other in one response.",
            param="tools",
        )
    if body.wants_logprobs:
        raise bad_request(
            "There are no log-probabilities of a response with tools of the type `mcp`.",
            param="top_logprobs",
        )
    names, approved = access.names, []
    for one in chat.approved:
        if one.label not in names:
            raise bad_request(
                f"`{one.path}` approves a call of the MCP server {one.label[:80]!r}, which is not in "
                "`tools`.",
                param=one.path,
            )
        name = f"{names[one.label]}.{one.name}"
        approved.append(ToolCall(one.request_id, name, one.arguments))
    changed: dict[str, Any] = {"parallel_tool_calls": body.parallel_tool_calls}
    choice = _mcp_choice(body.tool_choice, names, wanted.choice_of_tools)
    if choice is not None:
        changed["tool_choice"] = choice
    servers = list(access.servers)
    loop = ToolLoopBody(tools=[], mcp_servers=servers, max_rounds=MAX_ROUNDS, mode="auto")
    make = partial(McpTurn, access=access, listed=chat.listed, approved=approved)
    given = wanted.model_copy(update=changed)
    return await begin_loop(request, context, given, loop, make, max_calls=body.max_tool_calls)


def _mcp_choice(
    choice: str | Mapping[str, Any] | None, names: Mapping[str, str], of_functions: ToolChoice
) -> ToolChoice | None:
    """A choice that functions of the client do not decide; None for another one.

    Args:
        choice: the request's.
        names: the configured names of the servers by label.
        of_functions: what the choice says of the functions of the client.

    Raises:
        ApiError: 400 for a choice of a server that is not there.
    """
    if choice == "required":
        return ToolChoice("required")
    if choice == "none":
        return ToolChoice("none")
    if not isinstance(choice, dict) or choice.get("type") not in ("mcp", "allowed_tools"):
        return None
    if choice["type"] == "allowed_tools":
        chosen = [
            one for one in choice["tools"] if isinstance(one, dict) and one.get("type") == "mcp"
        ]
        allowed = {_chosen_name(names[str(one["server_label"])], one) for one in chosen}
        allowed |= of_functions.names or frozenset()
        if not allowed:
            return ToolChoice("none")
        is_required = choice.get("mode") == "required"
        return ToolChoice("required" if is_required else "auto", frozenset(allowed))
    server = names.get(str(choice.get("server_label")))
    if server is None:
        raise bad_request(
            "`tool_choice.server_label` names no MCP server of `tools`.",
            param="tool_choice.server_label",
        )
    return ToolChoice("required", frozenset({_chosen_name(server, choice)}))


def _chosen_name(server: str, choice: Mapping[str, Any]) -> str:
    """The name of a chosen tool.

    Without one, all tools of the server are meant: `McpTurn` knows them once it is connected.
    """
    return f"{server}.{choice.get('name') or ''}"


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
