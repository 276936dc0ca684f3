"""`McpTurn`: a turn in which the server calls tools of MCP servers, and the client approves calls.

Unlike in a `LoopTurn`, a call that needs an approval ends the turn: the client is told which, and sends its
decision with the next request, which begins by making the approved calls. An approval is needed where the
client asks for one, and where this server's own permission mode does.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import replace

from starlette.requests import Request

from agents.runs.approvals import Decision
from agents.tool_loop.values import LoopEvent, LoopEventType
from app.server.calls.chat_choice import ChoiceEnd, TurnPiece
from app.server.calls.loop_turn import LoopTurn, RoundAnswer
from app.server.calls.model import LoadedModel
from app.server.calls.responses_mcp import McpAccess
from app.server.process.context import ServerContext
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.answer_parts import CallArguments, CallBegun
from engine.api.tools import Tool, ToolCall, ToolChoice, ToolRound

APPROVAL_NEEDED = "approval_needed"
"""The type of the event of a call that was not made, because the client has to approve it."""
_NOT_APPROVED = "`pravaha mcp approve {}` shows it and asks"


class McpTurn(LoopTurn):
    """A turn with MCP servers. `opening` comes first, then `pieces`.

    Attributes:
        notes: why servers or tools were left out.
        access: the servers.
        listed: labels of those whose tools an earlier answer has listed.
        approved_ids: ids of the calls that the client has approved.
    """

    joins_texts = False
    tells_permitted = True

    def __init__(
        self,
        request: Request,
        context: ServerContext,
        body: ChatCompletionRequest,
        model: LoadedModel,
        *,
        access: McpAccess,
        listed: Collection[str] = (),
        approved: Sequence[ToolCall] = (),
    ) -> None:
        """Nothing is connected yet.

        Args:
            request: the HTTP request.
            context: the server.
            body: the chat request.
            model: the model.
            access: the servers.
            listed: labels of those whose tools an earlier answer has listed.
            approved: calls of an earlier answer that the client has approved since.
        """
        super().__init__(request, context, body, model)
        self.notes: list[str] = []
        self.access = access
        self.listed = listed
        self._approved = tuple(approved)
        self.approved_ids = frozenset(one.id for one in approved)

    @property
    def offered(self) -> Sequence[Tool]:
        """The tools of the servers, once `opening` has ended."""
        return self._offered

    async def opening(self) -> None:
        """Connect the servers.

        One that was never approved here is left out: that is for a person at this server to do.
        """
        taking = asyncio.ensure_future(self._take_tools())
        async for event in self._events_until(taking):
            if event.type is LoopEventType.NOTE:
                self.notes.append(str(event.data["text"]))
            elif event.type is LoopEventType.APPROVAL_REQUESTED:
                server = str(event.data.get("name", "")).split(" ")[1:2]
                await self._decide(event, "deny", _NOT_APPROVED.format(*server or ("NAME",)))
        self._choose()
        self.is_opened = True

    def _is_offered(self, tool: Tool) -> bool:
        return self.access.is_allowed(tool.name)

    def _choose(self) -> None:
        """Put the names of a server's tools in place of the choice of a server (`SERVER.`)."""
        choice = self.body.tool_choice
        if not isinstance(choice, ToolChoice) or choice.names is None:
            return
        chosen = {
            tool.name
            for tool in self._offered
            for name in choice.names
            if tool.name == name or (name.endswith(".") and tool.name.startswith(name))
        }
        others = {one.name for one in self.body.offered_tools}
        if not chosen | (choice.names & others):
            raise bad_request(
                "`tool_choice` names no tool that its MCP server offers here.", param="tool_choice"
            )
        choice = replace(choice, names=frozenset(chosen | (choice.names & others)))
        self.body = self.body.model_copy(update={"tool_choice": choice})

    async def _before(self) -> AsyncGenerator[TurnPiece, None]:
        """Make the calls that the client has approved."""
        if not self._approved:
            return
        offered = {one.name for one in self._offered}
        answer = RoundAnswer({one.name for one in self._approved}, follows_text=False)
        for index, call in enumerate(self._approved):
            if call.name not in offered:
                raise bad_request(
                    f"The tool {call.name[:120]!r}, whose call was approved, is not offered any more.",
                    param="input",
                )
            answer.shown(
                [CallBegun(index, call.id, call.name), CallArguments(index, call.arguments)]
            )
        async for piece in self._act(answer, self._approved):
            yield piece

    async def _act(
        self, answer: RoundAnswer, calls: Sequence[ToolCall]
    ) -> AsyncGenerator[TurnPiece, None]:
        """Make those calls that need no approval of the client's, and report the others."""
        waiting = [
            one for one in calls if one.id not in self.approved_ids and self.access.asks(one.name)
        ]
        making = [one for one in calls if one not in waiting]
        finished = set[str]()
        made: ToolRound | None = None
        if making:
            acting = asyncio.wrap_future(self._session.act(making))
            events = self._events_until(acting)
            started: LoopEvent | None = None  # told once it is known that the call is made
            async for event in events:
                match event.type:
                    case LoopEventType.CALL_STARTED:
                        started = event
                        continue
                    case LoopEventType.APPROVAL_REQUESTED if event.call not in self.approved_ids:
                        break
                    case LoopEventType.APPROVAL_REQUESTED:
                        await self._decide(event, "once")
                        continue
                    case LoopEventType.CALL_FINISHED:
                        finished.add(event.call)
                if started is not None:
                    yield TurnPiece(0, (), loop_event=started.fields())
                    started = None
                yield TurnPiece(0, (), loop_event=event.fields())
            else:
                made = acting.result()
            await events.aclose()
        if made is None:
            waiting = [one for one in calls if one.id not in finished]
        for one in waiting:
            asked = {"call_id": one.id, "name": one.name, "arguments": one.arguments or "{}"}
            yield TurnPiece(0, (), loop_event={"type": APPROVAL_NEEDED, **asked})
        if waiting:
            self.is_stopped = True
        elif made is not None:
            self._take_results(answer, made)

    def _end(self, end: ChoiceEnd) -> ChoiceEnd:
        return end

    async def _decide(self, event: LoopEvent, decision: Decision, reason: str = "") -> None:
        if self._context.agents is not None:
            await asyncio.to_thread(
                self._context.agents.decide, event.data["approval"], decision, reason=reason
            )
