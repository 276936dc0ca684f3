"""`LoopTurn`: a turn of the assistant in which the server itself calls tools (`tool_loop` of a request).

It is used like a `ChatTurn`: each of its rounds is one, and calls of the server's tools are no part of the
answer but events beside it. A call of one of the client's own tools ends it, as in any chat.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar

from starlette.requests import Request

from agents.api.errors import AgentError
from agents.service.run_service import RunService
from agents.tool_loop.values import LoopEvent, LoopEventType, ToolLoopRequest
from app.server.calls.chat_choice import AnsweredChoice, ChoiceEnd, TurnPiece
from app.server.calls.chat_turn import ChatTurn, begin_turn
from app.server.calls.generation import Generation
from app.server.calls.model import LoadedModel, loaded_model
from app.server.middleware.disconnect import while_connected
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest, Message
from app.server.wire.tool_schemas import ToolBody, ToolLoopBody
from app.server.wire.usage import SummedUsage
from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)
from engine.api.request import limit_from
from engine.api.tools import CallResult, OpenTools, Tool, ToolCall, ToolChoice, ToolRound
from engine.grammar.call_plan import NO_WORDS
from engine.text.clipped import clipped

_NOT_WITH_LOOP = (
    "logprobs",
    "prompt_logprobs",
    "return_token_ids",
    "resumable",
    "retrieval",
    "functions",
)
"""Fields that speak of one generation, which a loop has several of, and the old form of tools."""
RESULT_SHARE = 8
"""A result takes at most this part of the model's context."""
_PARAGRAPH = "\n\n"


class LoopTurn:
    """A turn with the server's tools; either `pieces` or `answer` is to be called, once.

    Attributes:
        id: of the completion.
        body: the request body.
        model: the model.
        resources: to be closed, which also stops what runs: an answer, a tool, an approval that waits.
        usage: token counts of all rounds.
        joins_texts: whether the texts of all rounds are one text, of paragraphs.
        tells_permitted: whether there is an event between the start of a call and its work.
        is_opened: whether the tools are known.
        is_stopped: whether the answer ends after calls that were not made.
    """

    joins_texts = True
    tells_permitted = False
    is_opened = False
    is_stopped = False
    input_fields: dict[str, Any] = {}  # noqa: RUF012 - never changed

    def __init__(
        self,
        request: Request,
        context: ServerContext,
        body: ChatCompletionRequest,
        model: LoadedModel,
    ) -> None:
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self.body = body
        self.model = model
        self.resources = AsyncExitStack()
        self.usage = SummedUsage()
        self._request = request
        self._context = context
        self._messages: list[Message] = []
        self._results: list[CallResult] = []
        self._rounds = 0
        self._events: asyncio.Queue[LoopEvent | None] = asyncio.Queue()
        self._offered: Sequence[Tool] = ()
        self._tools: list[ToolBody] = []
        self._turn: ChatTurn | None = None
        self._loop = asyncio.get_running_loop()
        self._session: OpenTools
        self._may_call = True

    @property
    def generation(self) -> Generation | None:
        """That of the present round; None before the first."""
        return None if self._turn is None else self._turn.generation

    def report(self, event: LoopEvent) -> None:
        """Take an event of the tools, on any thread."""
        if event.type is LoopEventType.CALL_PERMITTED and not self.tells_permitted:
            return
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def open(self, session: OpenTools, *, waits: bool) -> None:
        """Take the tools, and begin the first round unless servers have to be connected before it.

        Raises:
            ApiError: the request is refused.
        """
        self._session = session
        self.resources.callback(session.close)
        if not waits:
            await self._take_tools()
            await self._begin_round()

    async def pieces(self) -> AsyncGenerator[TurnPiece, None]:
        """The pieces of the answer, with the events of the tools among them."""
        turn = self._turn
        if turn is None:
            if not self.is_opened:
                async for event in self._events_until(asyncio.ensure_future(self._take_tools())):
                    yield TurnPiece(0, (), loop_event=event.fields())
            async for piece in self._before():
                yield piece
            turn = await self._begin_round()
        shown_before = in_words = False
        while True:
            own = {one.name for one in self._offered}
            answer = RoundAnswer(own, follows_text=shown_before and self.joins_texts)
            end = ChoiceEnd("stop")
            async for piece in turn.pieces():
                parts = answer.shown(piece.parts)
                end = piece.end or end
                yield TurnPiece(0, parts, piece.batch)
            await turn.resources.aclose()
            shown_before = shown_before or bool(answer.text)
            goes_on = end.reason in ("stop", "tool_calls") and not answer.has_client_calls
            if goes_on and answer.own_calls and self._may_call:
                async for piece in self._act(answer, answer.own_calls):
                    yield piece
                if self.is_stopped:
                    break
                # The client's own tools may still be called.
                in_words = not self._may_call and not self.body.offered_tools
            elif goes_on and not in_words and not answer.text.strip():
                in_words = True
            else:
                break
            if self._tokens_left == 0:
                end, goes_on = replace(end, reason="length"), False
                break
            turn = await self._begin_round(in_words=in_words)
        if goes_on and not self.is_stopped and not answer.text.strip():
            yield TurnPiece(0, [AnswerText(NO_WORDS)])
        if goes_on:
            end = replace(end, reason="stop")
        yield TurnPiece(0, (), end=self._end(end))

    async def answer(self, request: Request, context: ServerContext) -> list[AnsweredChoice]:
        """The complete answer; waits for it while the client is connected.

        Raises:
            ClientDisconnected: the client disconnected.
            ApiError: a round failed, or the drain expired.
        """
        async with self.resources:
            return await while_connected(request, context, self._collected())

    @property
    def request_ids(self) -> list[str]:
        """The engine's ids of the present round; none between two rounds."""
        return [] if self._turn is None else self._turn.request_ids

    async def end_reasoning(self) -> bool:
        """End the reasoning of the running round; see `ChatTurn.end_reasoning`."""
        return self._turn is not None and await self._turn.end_reasoning()

    async def _collected(self) -> list[AnsweredChoice]:
        parts: list[AnswerPart] = []
        end = ChoiceEnd("stop")
        async for piece in self.pieces():
            parts += piece.parts
            end = piece.end or end
        return [AnsweredChoice(parts, end)]

    async def _before(self) -> AsyncGenerator[TurnPiece, None]:
        """What happens before the first round of a turn whose servers were connected first."""
        nothing: tuple[TurnPiece, ...] = ()
        for piece in nothing:
            yield piece

    async def _act(
        self, answer: "RoundAnswer", calls: Sequence[ToolCall]
    ) -> AsyncGenerator[TurnPiece, None]:
        """Make the calls of an answer."""
        acting = asyncio.wrap_future(self._session.act(calls))
        async for event in self._events_until(acting):
            yield TurnPiece(0, (), loop_event=event.fields())
        self._take_results(answer, acting.result())

    def _take_results(self, answer: "RoundAnswer", made: ToolRound) -> None:
        self._add(answer, made.results)
        self._may_call = made.may_call

    def _end(self, end: ChoiceEnd) -> ChoiceEnd:
        """The end of the whole answer."""
        return replace(end, fields={**end.fields, **self._fields()})

    async def _take_tools(self) -> None:
        try:
            opened = await asyncio.wrap_future(self._session.offered())
        except AgentError as error:
            raise bad_request(str(error), param="tool_loop") from error
        self._offered = [one for one in opened if self._is_offered(one)]
        given = {one.name for one in self.body.offered_tools}
        both = next((one.name for one in self._offered if one.name in given), None)
        if both is not None:
            raise bad_request(
                f"The tool {both!r} is one of `tools` and one of `tool_loop`: rename yours.",
                param="tools",
            )
        offered = [ToolBody.model_validate(_body_of(one)) for one in self._offered]
        self._tools = [*(self.body.tools or ()), *offered]

    def _is_offered(self, tool: Tool) -> bool:
        """Whether the model is offered a tool that is open."""
        return True

    async def _events_until(self, work: "asyncio.Future[Any]") -> AsyncGenerator[LoopEvent, None]:
        """The events up to the end of `work`, which is cancelled with this generator.

        They arrive in order: the agents' thread reports the end of its work after its events.
        """
        work.add_done_callback(lambda done: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await work
        finally:
            work.cancel()

    @property
    def _tokens_left(self) -> int | None:
        """What the rounds so far have left of the limit of tokens; None without a limit."""
        limit = limit_from(self.body.token_limit)
        return None if limit is None else max(0, limit - self.usage.completion_tokens)

    async def _begin_round(self, *, in_words: bool = False) -> ChatTurn:
        changed: dict[str, Any] = {"tools": self._tools, "tool_loop": None}
        if self._rounds or self.usage.rounds:  # calls were made, or this is not the first round
            changed |= {
                "messages": [*self.body.messages, *self._messages],
                "request_id": None,
                "continue_final_message": None,
                "add_generation_prompt": None,
            }
            if self.body.choice_of_tools.mode == "required":
                changed["tool_choice"] = ToolChoice()  # the call that was asked for has been made
        if (left := self._tokens_left) is not None:
            changed["max_completion_tokens"] = left
        body = self.body.model_copy(update=changed)
        turn = self._turn = await begin_turn(
            self._request, self._context, body, in_loop=True, in_words=in_words
        )
        self.usage.rounds.append(turn.usage)
        await self.resources.enter_async_context(turn.resources)
        return turn

    def _add(self, answer: "RoundAnswer", results: Sequence[CallResult]) -> None:
        """Continue the conversation by an answer with calls and their results."""
        self._rounds += 1
        tokenizer = self.model.tokenizer
        limit = self.model.info.context_length // RESULT_SHARE
        self._results += results
        self._messages.append(Message.model_validate(answer.message()))
        for result in results:
            text = clipped(result.text, limit, tokenizer.encode, tokenizer.decode)
            message = {"role": "tool", "tool_call_id": result.call.id, "content": text}
            self._messages.append(Message.model_validate(message))

    def _fields(self) -> dict[str, Any]:
        """What the tools did, as a member of the choice."""
        calls = [
            {
                "id": one.call.id,
                "name": one.call.name,
                "arguments": one.call.arguments,
                "state": one.state.value,
                "seconds": one.seconds,
            }
            for one in self._results
        ]
        messages = [_message_fields(one) for one in self._messages]
        return {"tool_loop": {"rounds": self._rounds, "calls": calls, "messages": messages}}


class RoundAnswer:
    """The answer of one round: what the client sees of it, and the calls of the server's tools."""

    def __init__(self, own: set[str], *, follows_text: bool) -> None:
        self.text = ""
        self.has_client_calls = False
        self._own = own
        self._follows_text = follows_text
        self._reasoning = ""
        self._begun: dict[int, CallBegun] = {}
        self._arguments: dict[int, str] = {}
        self._client: dict[int, int] = {}  # index in the round → index in the whole answer

    @property
    def own_calls(self) -> list[ToolCall]:
        """The calls of the server's tools, in order."""
        return [
            ToolCall(one.id, one.name, self._arguments.get(index, ""))
            for index, one in self._begun.items()
        ]

    def shown(self, parts: Sequence[AnswerPart]) -> list[AnswerPart]:
        """The parts that the client sees."""
        shown: list[AnswerPart] = []
        for part in parts:
            match part:
                case AnswerText(text):
                    if self._follows_text and text and not self.text:
                        part = AnswerText(_PARAGRAPH + text)
                    self.text += text
                    shown.append(part)
                case AnswerReasoning(text):
                    self._reasoning += text
                    shown.append(part)
                case CallBegun(index, _, name) if name in self._own:
                    self._begun[index] = part
                case CallBegun(index, id_, name):
                    self._client[index] = len(self._client)
                    self.has_client_calls = True
                    shown.append(CallBegun(self._client[index], id_, name))
                case CallArguments(index, text) if index in self._begun:
                    self._arguments[index] = self._arguments.get(index, "") + text
                case CallArguments(index, text):
                    shown.append(CallArguments(self._client[index], text))
        return shown

    def message(self) -> dict[str, Any]:
        """The answer as a message of the conversation."""
        calls = [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": one.name, "arguments": one.arguments or "{}"},
            }
            for one in self.own_calls
        ]
        reasoning = {"reasoning_content": self._reasoning} if self._reasoning else {}
        return {"role": "assistant", "content": self.text, "tool_calls": calls, **reasoning}


def _body_of(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _message_fields(message: Message) -> dict[str, Any]:
    """A message of the loop as the client may send it back."""
    fields: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.reasoning_content:
        fields["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": one.function.name, "arguments": one.function.arguments},
            }
            for one in message.tool_calls
        ]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return fields


Made = TypeVar("Made", bound=LoopTurn)


async def begin_loop(
    request: Request,
    context: ServerContext,
    body: ChatCompletionRequest,
    wanted: ToolLoopBody,
    make: Callable[[Request, ServerContext, ChatCompletionRequest, LoadedModel], Made],
    *,
    max_calls: int | None = None,
) -> Made:
    """Check a chat request with the member `tool_loop` and begin its first round.

    Args:
        request: the HTTP request.
        context: the server.
        body: its body, or a chat request that stands for it.
        wanted: the tools of the server.
        make: the turn.
        max_calls: calls of the whole answer that are made.

    Raises:
        ApiError: the request is refused.
        ClientDisconnected: the client left meanwhile.
        InvalidRequest, QueueFull, EngineUnavailable: from the engine.
    """
    if context.agents is None:
        raise bad_request("This server runs no tools.", param="tool_loop")
    for name in _NOT_WITH_LOOP:
        if getattr(body, name):
            raise bad_request(f"`{name}` is not possible with `tool_loop`.", param=name)
    if body.choices > 1:
        raise bad_request("`n` must be 1 with `tool_loop`.", param="n")
    turn = make(request, context, body, loaded_model(context, body.model))
    try:
        # The drain waits for the whole turn: while a tool works, nothing is generated.
        turn.resources.enter_context(context.drain.work())
        session = await _opened(
            context.agents, _loop_request(wanted, body, turn.id, max_calls), turn
        )
        await turn.open(session, waits=bool(wanted.mcp_servers))
    except BaseException:
        await turn.resources.aclose()
        raise
    context.running_turns[turn.id] = turn
    turn.resources.callback(context.running_turns.pop, turn.id, None)
    return turn


async def _opened(agents: RunService, wanted: ToolLoopRequest, turn: LoopTurn) -> OpenTools:
    try:
        return await asyncio.to_thread(agents.open_tools, wanted, turn.report)
    except AgentError as error:
        raise bad_request(str(error), param="tool_loop") from error


def _loop_request(
    wanted: ToolLoopBody, body: ChatCompletionRequest, turn_id: str, max_calls: int | None
) -> ToolLoopRequest:
    written = [one.text for one in body.messages if one.role in ("user", "system", "developer")]
    return ToolLoopRequest(
        None if wanted.tools is None else tuple(wanted.tools),
        tuple(wanted.mcp_servers),
        max_rounds=wanted.max_rounds,
        max_calls=max_calls,
        mode=wanted.mode,
        conversation=body.session or turn_id,
        text="\n".join(written),
        has_results=any(one.role == "tool" for one in body.messages),
    )
