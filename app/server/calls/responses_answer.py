"""`ResponseAnswer`: formats a turn as a response, whole or as a stream of named, numbered events."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from starlette.requests import Request

from agents.tool_loop.values import LoopEventType
from app.server.calls.chat_choice import ChoiceEnd, TurnPiece
from app.server.calls.chat_turn import ChatTurn
from app.server.calls.mcp_turn import APPROVAL_NEEDED, McpTurn
from app.server.calls.responses_mcp import without_credentials
from app.server.calls.responses_output import Event, ItemStatus, ResponseOutput, new_id
from app.server.calls.responses_tools import ResponseTools
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, from_engine
from app.server.wire.logprobs import chat_logprobs
from app.server.wire.responses_schemas import ResponseRequest
from app.server.wire.sse import named_event
from app.server.wire.usage import input_output_usage
from engine.api.answer_parts import AnswerText
from engine.api.request import RequestOutput, TokenBatch
from engine.api.tools import CallState, Tool

Keep = Callable[[dict[str, Any]], Awaitable[None]]
"""Keeps a response."""

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why an answer is incomplete, by OpenAI's `finish_reason`."""


class ResponseAnswer:
    """One response. Either `events` or `whole` is to be called, once.

    Attributes:
        id: of the response, the same in all events.
        output: its items so far.
        status: OpenAI's.
    """

    def __init__(
        self,
        body: ResponseRequest,
        tools: ResponseTools,
        keep: Keep,
        *,
        is_warm_up: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is generated yet.

        Args:
            body: the request.
            tools: its tools.
            keep: keeps the response that has ended, before the client hears of its end.
            is_warm_up: whether only the prompt is read: the response is complete without any output.
            clock: Unix time in seconds.
        """
        self.id = new_id("resp")
        self._summarizes = body.reasoning is not None and body.reasoning.asks_for_summary
        self.output = ResponseOutput(tools, summarizes=self._summarizes)
        self.status = "queued" if body.background else "in_progress"
        self._body = body
        self._tools = tools
        self._keep = keep
        self._is_warm_up = is_warm_up
        self._clock = clock
        self._created = int(clock())
        self._completed: int | None = None
        self._error: dict[str, Any] | None = None
        self._incomplete: dict[str, str] | None = None
        self._usage: dict[str, Any] | None = None
        self._count = 0  # of events
        self._pending_logprobs: list[dict[str, Any]] = []

    async def events(self, turn: ChatTurn | McpTurn) -> AsyncGenerator[bytes, None]:
        """The stream; the response is created before its prompt is read."""
        for event in self._begin():
            yield self._numbered(event)
        try:
            async for event in self._answered(turn):
                yield self._numbered(event)
        except Exception as error:
            last = self.failure(from_engine(error))
            try:
                await self.keep()
            except Exception as second:  # the error that ended the response is the one to tell
                from_engine(second)  # logs it
            yield last

    async def whole(
        self, turn: ChatTurn | McpTurn, request: Request, context: ServerContext
    ) -> dict[str, Any]:
        """The complete response; waits for it while the client is connected.

        Raises:
            ClientDisconnected, ApiError: as `ChatTurn.answer`.
        """
        if isinstance(turn, McpTurn):
            async with turn.resources:
                await while_connected(request, context, self._completed_by(turn))
            return self.response()
        (choice,) = await turn.answer(request, context)
        for _ in (*self._begin(), *self._searched(turn)):
            pass  # events are for streams
        piece = TurnPiece(0, choice.parts, None, choice.end)
        logprobs = self._logprobs(turn, choice.output)
        for _ in (*self.output.feed(piece.parts, logprobs), *self._end(turn, choice.end)):
            pass
        await self.keep()
        return self.response()

    async def _answered(self, turn: ChatTurn | McpTurn) -> AsyncGenerator[Event, None]:
        """The events of the answer; the response is kept before its last one."""
        if isinstance(turn, McpTurn):
            await turn.opening()
            for event in self._listed(turn):
                yield event
        for event in self._searched(turn):
            yield event
        async for piece in turn.pieces():
            for event in self._fed(turn, piece):
                yield event
            if piece.end is not None:
                events = list(self._end(turn, piece.end))
                await self.keep()
                for event in events:
                    yield event

    async def _completed_by(self, turn: McpTurn) -> None:
        for _ in self._begin():
            pass  # events are for streams
        async for _ in self._answered(turn):
            pass

    async def refused(self, error: ApiError) -> AsyncGenerator[bytes, None]:
        """The stream of a response whose prompt is too long, as OpenAI's servers answer one."""
        for event in self._begin():
            yield self._numbered(event)
        yield self.failure(error)

    async def keep(self) -> None:
        """Keep the response as it is now, if it is to be kept."""
        await self._keep(self.response())

    def failure(self, error: ApiError) -> bytes:
        """The last event of a response that failed."""
        self.fail(error)
        return self._numbered(self._lifecycle("failed"))

    def fail(self, error: ApiError) -> None:
        """End the response with an error."""
        self.status = "failed"
        self._error = {"code": _error_code(error), "message": str(error.detail)}
        for _ in self.output.finish("incomplete"):
            pass

    def cancel(self) -> bytes:
        """End the response because the client asked for it; the last event."""
        for _ in self.output.finish("incomplete"):
            pass
        self.status = "cancelled"
        return self._numbered(self._lifecycle("incomplete"))

    def response(self) -> dict[str, Any]:
        """The response as it is now."""
        body, text, reasoning = self._body, self._body.text, self._body.reasoning
        form = text and text.format
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "completed_at": self._completed,
            "status": self.status,
            "background": bool(body.background),
            "error": self._error,
            "incomplete_details": self._incomplete,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "max_tool_calls": body.max_tool_calls,
            "model": body.model,
            "output": list(self.output.items),
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": body.previous_response_id,
            "conversation": body.conversation_id and {"id": body.conversation_id},
            "prompt_cache_key": body.prompt_cache_key,
            "reasoning": {
                "effort": reasoning and reasoning.effort,
                "summary": "detailed" if self._summarizes else None,
            },
            "safety_identifier": body.safety_identifier,
            "service_tier": "default",
            "store": body.is_stored,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "presence_penalty": body.presence_penalty or 0.0,
            "frequency_penalty": body.frequency_penalty or 0.0,
            "text": {
                "format": {"type": "text"} if form is None else _shown_format(form),
                "verbosity": (text and text.verbosity) or "medium",
            },
            "tool_choice": body.tool_choice or "auto",
            "tools": [_shown_tool(one) for one in body.tools or ()],
            "top_logprobs": body.top_logprobs or 0,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": body.truncation or "disabled",
            "usage": self._usage,
            "user": body.user,
            "metadata": body.metadata or {},
        }

    def _begin(self) -> Iterator[Event]:
        yield self._lifecycle("created")
        if self.status == "queued":
            yield self._lifecycle("queued")
        self.status = "in_progress"
        yield self._lifecycle("in_progress")

    def _listed(self, turn: McpTurn) -> Iterator[Event]:
        """The tools of the MCP servers, unless an earlier answer has listed them."""
        for server, wanted in turn.access.servers.items():
            if wanted.label in turn.listed:
                continue
            places = [(one, turn.access.place(one.name)) for one in turn.offered]
            tools = [
                _listed_tool(tool, place[1])
                for tool, place in places
                if place is not None and place[0] == server
            ]
            error = None if tools else "; ".join(turn.notes) or "The server has no such tools."
            item = {
                "id": new_id("mcpl"),
                "type": "mcp_list_tools",
                "server_label": wanted.label,
                "tools": tools,
                "error": error,
            }
            end = "completed" if error is None else "failed"
            stages = [f"response.mcp_list_tools.{stage}" for stage in ("in_progress", end)]
            yield from self.output.add_complete(item, stages, tools=[], error=None)

    def _called(self, turn: McpTurn, event: Mapping[str, Any]) -> Iterator[Event]:
        """What a tool of an MCP server does."""
        kind, call_id = event["type"], event.get("call_id", "")
        if kind == LoopEventType.CALL_FINISHED:
            failed = event["state"] != CallState.OK
            yield from self.output.end_mcp_call(call_id, event["result"], failed=failed)
            return
        place = turn.access.place(event.get("name", ""))
        if place is None:
            return
        server, name = place
        label, arguments = turn.access.servers[server].label, event.get("arguments", "")
        if kind == LoopEventType.CALL_STARTED:
            approval = call_id if call_id in turn.approved_ids else None
            yield from self.output.begin_mcp_call(call_id, label, name, arguments or "{}", approval)
        elif kind == APPROVAL_NEEDED:
            item = {
                "id": new_id("mcpr"),
                "type": "mcp_approval_request",
                "server_label": label,
                "name": name,
                "arguments": arguments,
            }
            yield from self.output.add_complete(item)

    def _searched(self, turn: ChatTurn | McpTurn) -> Iterator[Event]:
        """The search in files, which was done before the model was asked."""
        found = turn.input_fields.get("retrieval")
        if found is None:
            return
        with_results = "file_search_call.results" in (self._body.include or ())
        item = {
            "id": new_id("fs"),
            "type": "file_search_call",
            "status": "completed",
            "queries": [one["query"] for one in found["rounds"]],
            "results": [_result(one) for one in found["passages"]] if with_results else None,
        }
        stages = [
            f"response.file_search_call.{s}" for s in ("in_progress", "searching", "completed")
        ]
        yield from self.output.add_complete(item, stages, status="in_progress")

    def _fed(self, turn: ChatTurn | McpTurn, piece: TurnPiece) -> Iterator[Event]:
        if piece.loop_event is not None and isinstance(turn, McpTurn):
            yield from self._called(turn, piece.loop_event)
        self._pending_logprobs += self._logprobs(turn, piece.batch)
        if not piece.parts:
            return
        # Text can lag behind its tokens, whose logprobs then come with the next piece.
        is_text = any(isinstance(part, AnswerText) for part in piece.parts)
        yield from self.output.feed(piece.parts, self._pending_logprobs if is_text else ())
        self._pending_logprobs = []

    def _end(self, turn: ChatTurn | McpTurn, end: ChoiceEnd) -> Iterator[Event]:
        reason = None if self._is_warm_up else _INCOMPLETE.get(end.reason)
        status: ItemStatus = "completed" if reason is None else "incomplete"
        annotations = [_annotation(one) for one in end.annotations or ()]
        yield from self.output.finish("incomplete" if self._is_warm_up else status, annotations)
        self.status = status
        self._usage = response_usage(turn.usage.counts())
        if reason is None:
            self._completed = int(self._clock())
        else:
            self._incomplete = {"reason": reason}
        yield self._lifecycle(status)

    def _lifecycle(self, stage: str) -> Event:
        return {"type": f"response.{stage}", "response": self.response()}

    def _numbered(self, event: Event) -> bytes:
        number, self._count = self._count, self._count + 1
        return named_event({"type": event["type"], "sequence_number": number, **event})

    def _logprobs(
        self, turn: ChatTurn | McpTurn, output: RequestOutput | TokenBatch | None
    ) -> list[dict[str, Any]]:
        if output is None or not self._body.wants_logprobs:
            return []
        content: list[dict[str, Any]] = chat_logprobs(
            turn.model.tokenizer,
            output.token_ids,
            output.logprobs,
            output.top_logprobs,
            alternatives=self._body.top_logprobs or 0,
        )["content"]
        return content


def response_usage(counts: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAI's `usage` of a response from that of a chat."""
    details = counts.get("completion_tokens_details") or {}
    return input_output_usage(
        counts["prompt_tokens"],
        counts["prompt_tokens_details"]["cached_tokens"],
        counts["completion_tokens"],
        reasoning=details.get("reasoning_tokens", 0),
    )


def _error_code(error: ApiError) -> str:
    """The code of a failed response; agents act on some of them."""
    if error.code in ("context_length_exceeded", "content_filter"):
        return error.code
    if error.status_code == 429:
        return "rate_limit_exceeded"
    return "server_error" if error.status_code >= 500 else error.code or "invalid_prompt"


def _shown_format(form: Any) -> dict[str, Any]:
    if form.type != "json_schema":
        return {"type": form.type}
    return {
        "type": form.type,
        "name": form.name or "",
        "description": form.description,
        "schema": form.schema_,
        "strict": bool(form.strict),
    }


def _shown_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as the client sent it; a function with all members that OpenAI's answers have."""
    if tool.get("type") == "mcp":
        return without_credentials(tool)
    if tool.get("type") != "function":
        return dict(tool)
    return {"description": None, "parameters": None, "strict": None, **tool}


def _listed_tool(tool: Tool, name: str) -> dict[str, Any]:
    """A tool of an MCP server as the list of them has it, under the server's own name of it."""
    return {
        "name": name,
        "description": tool.description,
        "input_schema": dict(tool.parameters),
        "annotations": None,
    }


def _result(passage: Mapping[str, Any]) -> dict[str, Any]:
    """A passage as a result of a search in files."""
    return {
        "file_id": passage["file_id"],
        "filename": passage["filename"],
        "vector_store_id": passage["vector_store_id"],
        "score": passage["score"],
        "text": passage["text"],
        "attributes": {},
    }


def _annotation(citation: Mapping[str, Any]) -> dict[str, Any]:
    """A citation of a chat as one of a response; `index` is the place of the passage among the results."""
    cited = citation["file_citation"]
    return {
        "type": "file_citation",
        "index": cited["n"] - 1,
        **{name: value for name, value in cited.items() if name != "n"},
    }
