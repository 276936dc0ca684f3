"""`ToolExecutor`: calls a run's tools through permission, taint, budget, approval and timeout.

The user's approval rules (`agents.runs.approval_rules`) decide calls that match them; they never lift the
taint rule, nor a denial by mode.

Taint rule, whatever the mode is. Once a run has read untrusted *and* private data, a tool that writes,
executes or sends needs an approval. Once it has read untrusted data and anything that is not known to be
public, which reading any file does, a tool that sends needs one. Every call is logged.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from agents.api.agent_spec import AgentSpec, PermissionMode
from agents.api.budget import BudgetMeter
from agents.api.errors import InvalidTask, PermissionDenied
from agents.api.events import RunEventType
from agents.runs.approval_rules import ApprovalRule, mode_of
from agents.runs.approvals import ApprovalRequest, Approvals, new_approval_id
from agents.runs.event_log import EventLog
from agents.runs.run_guard import GuardedText, RunGuard
from agents.tools.tool import MAX_OUTPUT_CHARS, Effect, Taint, Tool, ToolContext, ToolOutput

_STRICTNESS: Mapping[PermissionMode, int] = {"auto": 0, "ask": 1, "deny": 2}
_SIDE_EFFECTS = frozenset({Effect.WRITE, Effect.EXECUTE, Effect.EGRESS})
MAX_LOGGED_CHARS = 2_000
_LOGGED_DATA = ("status",)
"""Members of an output beside its text that the log has: a replay needs them."""
MAX_DIFF_CHARS = 500_000
"""Of the diff that an approver is shown."""
MAX_PROGRESS_CHARS = 8_000
"""Of a call's output while it runs; the events of a run are kept in memory."""


def stricter(one: PermissionMode, other: PermissionMode) -> PermissionMode:
    """The mode that allows less."""
    return max(one, other, key=lambda mode: _STRICTNESS[mode])


@dataclass(slots=True)
class ToolExecutor:
    """The tools of one run. Use from one event loop.

    Attributes:
        spec: the calling agent.
        tools: its tools by name.
        context: where they act.
        log: the run's events.
        meter: the run's budget.
        approvals: the queue of pending approvals.
        mode: the run's permission mode; the agent's own may only tighten it.
        node: the pipeline's node, for events.
        conversation: what an "always" approval is limited to: a conversation's id, or the run's.
        taint: labels of everything the run has read so far.
        guard: checks what the tools return; None lets it pass.
        report: called with the tool's name and the result of its check.
        rules: the user's approval rules.
        taint_rule: False only in `benchmarks/agent_attacks.py`, which measures what the rule prevents.
    """

    spec: AgentSpec
    tools: Mapping[str, Tool]
    context: ToolContext
    log: EventLog
    meter: BudgetMeter
    approvals: Approvals
    mode: PermissionMode = "ask"
    node: str = ""
    conversation: str = ""
    taint: frozenset[Taint] = frozenset({Taint.TRUSTED})
    rules: tuple[ApprovalRule, ...] = ()
    clock: Callable[[], float] = time.monotonic
    guard: RunGuard | None = None
    report: Callable[[str, GuardedText], None] = lambda name, guarded: None
    taint_rule: bool = True

    def add_taint(self, labels: frozenset[Taint]) -> None:
        """Note that the run reads data with these labels beside the outputs of its tools."""
        self.taint |= labels

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, as_read: bool = False
    ) -> ToolOutput:
        """Call a tool. A failure of the tool itself is an output with `failed` set.

        Args:
            name: the tool.
            arguments: its input.
            as_read: return the text as the tool read it, for procedures, which look for what the guard
                redacts; labels and events are the same.

        Raises:
            PermissionDenied: the agent may not call it, or an approver denied it.
            BudgetExhausted: no tool call is left.
            InvalidTask: the arguments do not match the tool's schema.
        """
        tool, checked = self._checked(name, arguments)
        refused = tool.unavailable or tool.refusal(checked)
        if refused:
            return self._refused(tool, checked, refused)
        self.meter.use_tool()
        diff = ""
        if tool.preview is not None and self.needs_approval(tool, checked):
            try:
                diff = await tool.preview(checked, self.context)
            except InvalidTask as error:  # nobody is asked about a call that would fail
                return self._refused(tool, checked, str(error))
        await self._permit(tool, checked, diff=diff)
        return await self._run(tool, checked, as_read=as_read)

    async def permit(self, name: str, arguments: Mapping[str, Any], *, reason: str) -> None:
        """Ask what `call` would ask, without calling: the caller does the like itself, such as in a copy.

        Args:
            name: the tool.
            arguments: its input, as an approver sees it.
            reason: what the caller is going to do.

        Raises:
            PermissionDenied: the agent may not call it, or an approver denied it.
            InvalidTask: the arguments do not match the tool's schema.
        """
        tool, checked = self._checked(name, arguments)
        refused = tool.unavailable or tool.refusal(checked)
        if refused:
            raise PermissionDenied(refused)
        await self._permit(tool, checked, reason)

    def _checked(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, BaseModel]:
        """The tool with its arguments as its schema takes them."""
        tool = self.tools.get(name)
        if tool is None:
            raise PermissionDenied(f"The agent {self.spec.key} may not call {name!r:.40}.")
        try:
            return tool, tool.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "arguments"
            raise InvalidTask(f"{name}: {where}: {first['msg']}.") from error

    def permitted(self) -> list[Tool]:
        """The tools that may be called now: those whose every call would fail or be denied are left out."""
        if self.meter.tools_left <= 0:
            return []
        mode = stricter(self.mode, self.spec.permission_mode)
        can_ask = mode != "deny" and self.approvals.has_approver
        ruled = {rule.tool for rule in self.rules if rule.mode == "auto" and mode != "deny"}

        def unasked(tool: Tool) -> bool:
            if self._taint_reason(tool) or self._asks_without_sandbox(tool):
                return False
            return mode == "auto" or tool.name in ruled

        return [
            tool
            for tool in self.tools.values()
            if not tool.unavailable
            and (can_ask or not tool.effects & _SIDE_EFFECTS or unasked(tool))
        ]

    def _asks_without_sandbox(self, tool: Tool) -> bool:
        """Whether every call needs an approval because the user switched the sandbox off."""
        return Effect.EXECUTE in tool.effects and self.context.sandbox == "off"

    def needs_approval(self, tool: Tool, arguments: BaseModel) -> str:
        """Why this call needs an approval; empty if it needs none.

        Raises:
            PermissionDenied: the mode or a rule denies it.
            InvalidTask: the arguments have no parsed form, such as a command with an open quote.
        """
        mode = stricter(self.mode, self.spec.permission_mode)
        side_effects = bool(tool.effects & _SIDE_EFFECTS) or tool.needs_approval(arguments)
        reason = self._taint_reason(tool) if side_effects else ""
        if not reason and self._has_read(Taint.UNTRUSTED) and tool.asks_when_untrusted(arguments):
            side_effects, reason = True, "the run has read untrusted data"
        if not side_effects:
            return ""
        if mode == "deny":
            raise PermissionDenied(f"{tool.name} is denied: the permission mode is deny.")
        words = (tool.target(arguments),) if tool.words is None else tool.words(arguments)
        ruled = mode_of(self.rules, tool.name, words)
        if ruled == "deny":
            raise PermissionDenied(f"{tool.name} is denied: an approval rule denies this call.")
        if reason:
            return reason
        if self._asks_without_sandbox(tool):
            return "the sandbox is off"
        if ruled == "ask":
            return "an approval rule asks for it"
        return "" if "auto" in (mode, ruled) else "the tool has side effects"

    def _taint_reason(self, tool: Tool) -> str:
        """Why the taint rule asks for an approval of a tool with side effects; empty if it does not."""
        if not self._has_read(Taint.UNTRUSTED):
            return ""
        if self._has_read(Taint.PRIVATE):
            return "the run has read untrusted and private data"
        if Effect.EGRESS in tool.effects and self._has_read(Taint.LOCAL):
            return "the run has read files or other data that is not known to be public"
        return ""

    def _has_read(self, label: Taint) -> bool:
        return self.taint_rule and label in self.taint

    def _refused(self, tool: Tool, arguments: BaseModel, reason: str) -> ToolOutput:
        """A call that is not made, as the log shows it."""
        shown = arguments.model_dump_json()[:MAX_LOGGED_CHARS]
        self._record(RunEventType.TOOL_STARTED, tool=tool.name, arguments=shown)
        self._record(
            RunEventType.TOOL_FINISHED,
            tool=tool.name,
            failed=True,
            seconds=0.0,
            text=reason[:MAX_LOGGED_CHARS],
        )
        return _failure(reason)

    async def _permit(
        self, tool: Tool, arguments: BaseModel, purpose: str = "", *, diff: str = ""
    ) -> None:
        reason = self.needs_approval(tool, arguments)
        if not reason:
            return
        if purpose:
            reason = f"{reason}; {purpose}"
        request = ApprovalRequest(
            id=new_approval_id(),
            run=self.log.run,
            conversation=self.conversation or self.log.run,
            agent=self.spec.key,
            tool=tool.name,
            arguments=orjson.dumps(arguments.model_dump(mode="json")).decode(),
            target=tool.target(arguments),
            effects=tool.effects,
            folder=str(self.context.root),
            reason=reason,
            diff=diff[:MAX_DIFF_CHARS],
        )
        fields = {"approval": request.id, "tool": tool.name, "target": request.target[:300]}
        self._record(RunEventType.APPROVAL_REQUESTED, **fields)
        try:
            await self.approvals.ask(request)
        except PermissionDenied as error:
            self._resolved(fields, allowed=False, reason=str(error))
            raise
        self._resolved(fields, allowed=True, reason="")

    def _progress_of(self, tool: Tool) -> Callable[[str], None]:
        """What appends a call's output to the log while it runs, up to a bound."""
        left = MAX_PROGRESS_CHARS

        def progress(text: str) -> None:
            nonlocal left
            shown = text[:left]
            left -= len(shown)
            if shown:
                self.log.append(
                    RunEventType.TOOL_OUTPUT, agent=self.spec.key, tool=tool.name, text=shown
                )

        return progress

    def _resolved(self, fields: dict[str, str], *, allowed: bool, reason: str) -> None:
        self._record(RunEventType.APPROVAL_RESOLVED, **fields, allowed=allowed, reason=reason)

    def _record(self, kind: RunEventType, **data: Any) -> None:
        self.log.append(kind, node=self.node, agent=self.spec.key, **data)

    async def _run(self, tool: Tool, arguments: BaseModel, *, as_read: bool) -> ToolOutput:
        shown = arguments.model_dump_json()[:MAX_LOGGED_CHARS]
        self._record(RunEventType.TOOL_STARTED, tool=tool.name, arguments=shown)
        began = self.clock()
        self.context.taint = self.taint if self.taint_rule else frozenset({Taint.TRUSTED})
        self.context.progress = self._progress_of(tool)
        try:
            async with asyncio.timeout(tool.timeout_s):
                output = await tool.call(arguments, self.context)
        except TimeoutError:
            output = _failure(f"{tool.name} was stopped after {tool.timeout_s:g} s.")
        except (PermissionDenied, InvalidTask) as error:
            output = _failure(str(error))
        except Exception as error:  # a tool's mistake must not end the run
            output = _failure(f"{tool.name} failed: {type(error).__name__}: {error!s:.300}")
        guarded = await self._guarded(tool, output)
        self.taint |= guarded.taint
        self._record(
            RunEventType.TOOL_FINISHED,
            tool=tool.name,
            failed=output.failed,
            seconds=round(self.clock() - began, 4),
            text=guarded.text[:MAX_LOGGED_CHARS],
            taint=sorted(self.taint),
            **{name: output.data[name] for name in _LOGGED_DATA if name in output.data},
        )
        return replace(guarded, text=output.text) if as_read else guarded

    async def _guarded(self, tool: Tool, output: ToolOutput) -> ToolOutput:
        """The output as the model may read it, with the labels of what was found in it."""
        if self.guard is None or not output.text:
            return output
        checked = await self.guard.tool_output(output.text)
        if checked.found:
            self.report(tool.name, checked)
        return replace(output, text=checked.text, taint=output.taint | checked.labels)


def _failure(text: str) -> ToolOutput:
    return ToolOutput(text[:MAX_OUTPUT_CHARS], failed=True)
