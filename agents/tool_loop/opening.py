"""Opens a tool loop: checks what it is asked for, connects its MCP servers."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.api.agent_spec import AgentSpec, PermissionMode
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import InvalidTask
from agents.mcp.servers import McpServers
from agents.runs.agent_run import new_run_id
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.runs.mcp_tools import RunMcp
from agents.runs.run_guard import RunGuard
from agents.runs.tool_executor import ToolExecutor, stricter
from agents.runs.tool_settings import ToolSettings
from agents.text.near import near_matches
from agents.tool_loop.tool_loop import MAX_CALLS, ToolLoop
from agents.tool_loop.values import (
    CHAT,
    MAX_ROUNDS,
    LoopEvent,
    LoopEventType,
    ToolLoopRequest,
)
from agents.tools.file_access import DiskFiles
from agents.tools.sensitive import taint_of
from agents.tools.tool import Effect, Taint, Tool, ToolContext
from engine.api.tools import Tool as OfferedTool

_WITHOUT_FILES = frozenset({"http_fetch", "rag_search", "todo"})
_NO_FILES = (
    "{} reads files, and agents may read none here: start the server with --agents-root FOLDER."
)


@dataclass(frozen=True, slots=True)
class LoopMeans:
    """What the loops of a cluster share.

    Attributes:
        tools: all registered tools by name.
        mcp: the configured MCP servers.
        approvals: where calls wait for a decision.
        mode: permission mode; a request may only tighten it.
        guard: checks what tools return.
        settings: what the user decided about tools.
    """

    tools: Mapping[str, Tool]
    mcp: McpServers
    approvals: Approvals
    mode: PermissionMode
    guard: RunGuard | None
    settings: ToolSettings


@dataclass(slots=True)
class OpenLoop:
    """A loop with its tools; `close` it.

    Attributes:
        loop: makes the calls.
        offered: the tools as the model is offered them, in a fixed order.
    """

    loop: ToolLoop
    offered: Sequence[OfferedTool]
    _mcp: RunMcp

    async def close(self) -> None:
        """End its MCP servers."""
        await self._mcp.close()


@dataclass(frozen=True, slots=True)
class ToolChoices:
    """What a loop may be asked for in this place.

    Attributes:
        tools: what each tool does, by its name.
        refused: why a tool cannot be used here, by name.
        mcp_servers: the URLs of the configured servers by name; that of a program is empty.
    """

    tools: Mapping[str, str]
    refused: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: Mapping[str, str] = field(default_factory=dict)


def tool_choices(means: LoopMeans, mode: PermissionMode, root: Path | None) -> ToolChoices:
    """Which tools can be called with this mode and root."""
    strict = stricter(means.mode, mode)
    refused = {}
    for name, tool in means.tools.items():
        reason = tool.unavailable
        if not reason and root is None and name not in _WITHOUT_FILES:
            reason = _NO_FILES.format(name)
        if not reason and strict == "deny" and tool.effects - {Effect.READ}:
            reason = f"{name} has side effects, which the mode deny does not permit: choose ask."
        if reason:
            refused[name] = reason
    described = {name: tool.description for name, tool in means.tools.items()}
    return ToolChoices(described, refused, {one.name: one.url for one in means.mcp})


def chosen_tools(wanted: ToolLoopRequest, means: LoopMeans) -> list[Tool]:
    """The tools of a request, without those of MCP servers.

    Raises:
        InvalidTask: a name is unknown, or the tool cannot be used here; or there is nothing to call.
    """
    if not 1 <= wanted.max_rounds <= MAX_ROUNDS:
        raise InvalidTask(f"max_rounds must be 1 to {MAX_ROUNDS}.")
    choices = tool_choices(means, wanted.mode, wanted.root)
    for name in wanted.mcp_servers:
        means.mcp.get(name)
    if wanted.mcp_servers and stricter(means.mode, wanted.mode) == "deny":
        raise InvalidTask(
            "MCP servers execute programs of others, which the mode deny does not permit: choose ask."
        )
    if wanted.tools is None:
        names = [
            name
            for name, tool in means.tools.items()
            if name not in choices.refused and tool.effects <= {Effect.READ}
        ]
        if not names and not wanted.mcp_servers:
            raise InvalidTask("No tool that only reads can be used here: name `tools`.")
    else:
        names = list(dict.fromkeys(wanted.tools))
    for name in names:
        if name not in means.tools:
            raise InvalidTask(_unknown(name, means.tools))
        if name in choices.refused:
            raise InvalidTask(choices.refused[name])
    if not names and not wanted.mcp_servers:
        raise InvalidTask("There is nothing to call: name `tools` or `mcp_servers`.")
    return [means.tools[name] for name in names]


async def open_loop(
    wanted: ToolLoopRequest,
    means: LoopMeans,
    report: Callable[[LoopEvent], None],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> OpenLoop:
    """Open a loop. What has to be asked about its MCP servers is asked before it returns.

    Raises:
        InvalidTask, InvalidSpec: as `chosen_tools`.
    """
    tools = chosen_tools(wanted, means)
    budget = Budget(tools=wanted.max_rounds * MAX_CALLS)
    spec = AgentSpec(
        CHAT,
        "execution",
        "Answers a person.",
        "",
        tuple(tool.name for tool in tools),
        (),
        mcp_servers=wanted.mcp_servers,
        max_turns=wanted.max_rounds,
        budget=budget,
    )
    log = EventLog(new_run_id())
    root = (
        Path(os.devnull) if wanted.root is None else wanted.root
    )  # no folder: nothing is beneath it
    labels = taint_of(wanted.text)
    if wanted.has_results:
        labels |= {Taint.UNTRUSTED, Taint.LOCAL}
    executor = ToolExecutor(
        spec=spec,
        tools={tool.name: tool for tool in tools},
        context=ToolContext(
            root=root,
            run=log.run,
            agent=CHAT,
            artifacts=means.settings.artifacts,
            sandbox=means.settings.sandbox,
            files=DiskFiles() if wanted.files is None else wanted.files,
        ),
        log=log,
        meter=BudgetMeter(budget, started=clock()),
        approvals=means.approvals,
        mode=stricter(means.mode, wanted.mode),
        conversation=wanted.conversation,
        rules=means.settings.rules,
        taint=labels,
        clock=clock,
        guard=means.guard,
    )

    def note(text: str) -> None:
        report(LoopEvent(LoopEventType.NOTE, data={"text": text}))

    loop = ToolLoop(
        executor,
        max_rounds=wanted.max_rounds,
        max_calls=wanted.max_calls,
        report=report,
        clock=clock,
    )
    log.follow(loop.follow)

    def record(kind: Any, **data: Any) -> None:
        log.append(kind, agent=CHAT, **data)

    mcp = RunMcp(spec, means.mcp, means.approvals, record, log.run, str(root), note)
    try:
        found = await mcp.open() if wanted.mcp_servers else {}
    except BaseException:
        await mcp.close()
        raise
    if found:  # what their servers say about them is read with the tools
        executor.add_taint(frozenset({Taint.UNTRUSTED}))
    executor.tools = {**executor.tools, **found}
    return OpenLoop(loop, [_offered(tool) for tool in executor.tools.values()], mcp)


def _offered(tool: Tool) -> OfferedTool:
    return OfferedTool(
        tool.name, tool.description, _without_titles(tool.arguments.model_json_schema())
    )


def _without_titles(schema: Any) -> Any:
    """A schema without the titles that pydantic makes of names, which cost tokens and say nothing."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _without_titles(one) for key, one in value.items()}
        if name in ("properties", "$defs") and isinstance(value, dict)
        else _without_titles(value)
        for name, value in schema.items()
        if name != "title" or not isinstance(value, str)
    }


def _unknown(name: str, known: Iterable[str]) -> str:
    near = near_matches(name, known)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
    return f"There is no tool {name!r:.60}: {hint}"
