"""`ToolLoop`: makes the calls of a model's answers, until it may call no more.

```
answer with calls ──▶ act: permission, approval, call, result ──▶ the next answer
                       └─ last round, or nothing but repeated calls: the next answer has no calls
```

Its user generates the answers: the server as turns of a chat, the screen as messages of a conversation.
Nothing that a tool does ends the loop: failures, denials and wrong arguments are results that the model
reads.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from agents.api.errors import BudgetExhausted, InvalidTask, PermissionDenied
from agents.api.events import RunEvent, RunEventType
from agents.steps.repeats import canonical_call
from agents.tool_loop.equal_calls import EqualCalls, MadeCall
from agents.tool_loop.values import LoopEvent, LoopEventType
from agents.tools.tool import Tool, ToolOutput
from engine.api.tools import CallResult, CallState, ToolCall, ToolRound

MAX_CALLS = 16
"""Calls of one answer that are made."""

_REPORTED: Mapping[RunEventType, LoopEventType] = {
    RunEventType.TOOL_STARTED: LoopEventType.CALL_PERMITTED,
    RunEventType.TOOL_OUTPUT: LoopEventType.CALL_OUTPUT,
    RunEventType.APPROVAL_REQUESTED: LoopEventType.APPROVAL_REQUESTED,
    RunEventType.APPROVAL_RESOLVED: LoopEventType.APPROVAL_RESOLVED,
    RunEventType.NOTE: LoopEventType.NOTE,
}


class CalledTools(Protocol):
    """The tools of a loop (`agents.runs.tool_executor`)."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """All tools by name."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call one.

        Raises:
            PermissionDenied: it may not be called, or an approver denied it.
            BudgetExhausted: no call is left.
            InvalidTask: the arguments do not match the tool's schema.
        """
        ...


class ToolLoop:
    """The calls of one answer to a person. Use from one event loop.

    Attributes:
        rounds: answers whose calls were made.
    """

    def __init__(
        self,
        tools: CalledTools,
        *,
        max_rounds: int,
        max_calls: int | None = None,
        report: Callable[[LoopEvent], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make calls.

        Args:
            tools: what may be called.
            max_rounds: answers with calls.
            max_calls: calls of all answers; None sets no limit.
            report: is given every event, at once.
            clock: monotonic seconds.
        """
        self.rounds = 0
        self._tools = tools
        self._max_rounds = max_rounds
        self._calls_left = max_rounds * MAX_CALLS if max_calls is None else max_calls
        self._report = report
        self._clock = clock
        self._made = EqualCalls()
        self._repeats = False
        self._call = ""
        self._acting = asyncio.Lock()

    @property
    def may_call(self) -> bool:
        """Whether the next answer may have calls."""
        return self.rounds < self._max_rounds and self._calls_left > 0 and not self._repeats

    async def act(self, calls: Sequence[ToolCall]) -> ToolRound:
        """Make the calls of one answer, one after the other. Cancelling it stops the call that runs.

        Those of another answer wait: events belong to the one call that runs.
        """
        async with self._acting:
            return await self._act(calls)

    async def _act(self, calls: Sequence[ToolCall]) -> ToolRound:
        self.rounds += 1
        results, repeats = [], True
        for number, call in enumerate(calls):
            self._call = call.id
            self._tell(
                LoopEventType.CALL_STARTED,
                name=call.name,
                arguments=call.arguments,
                round=self.rounds,
            )
            began = self._clock()
            if not self._calls_left:
                made = _failure("It was not made: as many calls were made as this answer may have.")
            elif number < MAX_CALLS:
                self._calls_left -= 1
                made = await self._made_call(call)
            else:
                made = _failure(f"It was not made: an answer may have {MAX_CALLS} calls.")
            repeats = repeats and made.repeats
            state = CallState.FAILED if made.failed else CallState.OK
            result = CallResult(
                call,
                made.text,
                CallState.DENIED if made.denied else state,
                round(self._clock() - began, 3),
            )
            self._tell(
                LoopEventType.CALL_FINISHED,
                name=call.name,
                state=result.state.value,
                seconds=result.seconds,
                result=result.text,
            )
            results.append(result)
        self._call = ""
        self._repeats = repeats
        return ToolRound(results, self.may_call)

    def follow(self, event: RunEvent) -> None:
        """Report an event of the log of the tools, if it says what a person wants to know."""
        kind = _REPORTED.get(event.type)
        if kind is not None:
            self._tell(
                kind, **{"name" if key == "tool" else key: one for key, one in event.data.items()}
            )

    def _tell(self, kind: LoopEventType, **data: Any) -> None:
        self._report(LoopEvent(kind, self._call, data))

    async def _made_call(self, call: ToolCall) -> MadeCall:
        tool = self._tools.tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools.tools)
            return self._unfit(call, f"There is no tool {call.name!r:.60}; there are: {known}.")
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except orjson.JSONDecodeError:
            arguments = None
        if not isinstance(arguments, dict):
            return self._unfit(call, "The arguments are no JSON object.")
        try:
            canonical = canonical_call(tool, arguments)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "arguments"
            return self._unfit(call, f"{where}: {first['msg']}.")
        made = self._made.repeated(tool, canonical)
        if made is None:
            made = await self._output(call.name, arguments)
            made = self._made.add(tool, canonical, made)
        return made

    def _unfit(self, call: ToolCall, reason: str) -> MadeCall:
        written = f"{call.name}\n{call.arguments}".encode()
        return self._made.add_unfit(written, _failure(reason))

    async def _output(self, name: str, arguments: Mapping[str, Any]) -> MadeCall:
        try:
            output = await self._tools.call(name, arguments)
        except PermissionDenied as error:
            return MadeCall(str(error), failed=True, denied=True)
        except (InvalidTask, BudgetExhausted) as error:
            return _failure(str(error))
        return MadeCall(output.text or "(no output)", output.failed, denied=False)


def _failure(text: str) -> MadeCall:
    return MadeCall(text, failed=True, denied=False)
