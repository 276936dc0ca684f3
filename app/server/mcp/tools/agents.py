"""The tools `list_agents` and `run_agent`: runs of agents, with the permissions that they have over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Annotated, Any, Literal
from urllib.parse import quote

import anyio
from pydantic import BaseModel, Field

from app.server.mcp.api_client import ApiRefusal
from app.server.mcp.tool import Arguments, Output, Tool, ToolCall, ToolError

_FINISHED_WELL = "ok"
_CANCEL_S = 5.0
"""Time for telling the server that a run is to be cancelled."""


class ListAgentsArguments(Arguments):
    """Which agents."""

    category: Annotated[
        str | None,
        Field(description="Only these: execution, audit, security, design, pipeline or repair."),
    ] = None


class AgentSummary(BaseModel):
    """An agent or a pipeline of agents."""

    name: str
    kind: str
    category: str
    description: str


class Agents(Output):
    """What `run_agent` can run."""

    agents: list[AgentSummary]

    @property
    def text(self) -> str:
        """A line for each."""
        return "\n".join(f"{one.name} ({one.kind}): {one.description}" for one in self.agents)


class RunAgentArguments(Arguments):
    """What to run, and on what."""

    name: Annotated[
        str, Field(min_length=1, description="An agent or a pipeline, as `list_agents` shows them.")
    ]
    kind: Annotated[
        Literal["agent", "pipeline", "repair"],
        Field(description="The kind that is listed with it."),
    ] = "agent"
    task: Annotated[str, Field(description="What to do.")] = ""
    document: Annotated[str, Field(description="A text to work on.")] = ""
    paths: Annotated[
        list[str] | None,
        Field(description="Files and folders to work on, within the folders open to agents."),
    ] = None
    max_seconds: Annotated[
        float | None,
        Field(gt=0, le=10**9, description="The most time; the agent's own if left out."),
    ] = None
    max_tokens: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="The most tokens; the agent's own if left out."),
    ] = None

    def body(self) -> dict[str, Any]:
        """The request to the API. The mode is the one that asks: no caller can allow itself more."""
        body: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "task": self.task,
            "document": self.document,
            "paths": self.paths or [],
            "mode": "ask",
        }
        if self.max_seconds is not None:
            body["seconds"] = self.max_seconds
        if self.max_tokens is not None:
            body["tokens"] = self.max_tokens
        return body


class AgentRun(Output):
    """A run that has finished."""

    run_id: str
    state: str
    result: Annotated[dict[str, Any], Field(description="What the agent returned.")]

    @property
    def text(self) -> str:
        """The agent's words, if its result is a text; otherwise its JSON."""
        output = self.result.get("output")
        if isinstance(output, dict) and [name for name in output if output[name]] == ["text"]:
            return str(output["text"])
        return self.model_dump_json(exclude_none=True)


async def list_agents(call: ToolCall, given: ListAgentsArguments) -> Agents:
    """List the agents."""
    listed = (await call.api.get("/v1/agents"))["data"]
    wanted = [one for one in listed if given.category in (None, one["category"])]
    if not wanted:
        known = ", ".join(sorted({one["category"] for one in listed}))
        raise ToolError(
            f"No agents are in the category {given.category!r:.60}; there are: {known}."
        )
    return Agents(agents=[AgentSummary.model_validate(one) for one in wanted])


async def run_agent(call: ToolCall, given: RunAgentArguments) -> AgentRun:
    """Run an agent to its end; a call that is cancelled cancels the run."""
    with anyio.CancelScope(shield=True):  # a run whose id is not known could not be cancelled
        run_id: str = (await call.api.post("/v1/agents/runs", given.body()))["id"]
    path = f"/v1/agents/runs/{quote(run_id, safe='')}"
    try:
        await _follow(call, call.api.events("GET", f"{path}/events", params={"stream": True}))
        run = await call.api.get(path)
    except BaseException:
        with anyio.move_on_after(_CANCEL_S, shield=True), suppress(ApiRefusal):
            await call.api.post(f"{path}/cancel", {})
        raise
    if run["state"] != _FINISHED_WELL:
        reason = run.get("error") or "; ".join(
            row["reason"] for row in run.get("rows", ()) if row.get("reason")
        )
        ended = f"The run of {given.name} ended with the state {run['state']}"
        raise ToolError(f"{ended}: {reason}" if reason else f"{ended}.")
    return AgentRun(run_id=run_id, state=run["state"], result=run["result"] or {})


async def _follow(call: ToolCall, events: AsyncGenerator[dict[str, Any], None]) -> None:
    """Report the events of a run until its end."""
    async with aclosing(events):
        async for event in events:
            await call.progress.report(event["sequence"] + 1, None, _words(event))


def _words(event: dict[str, Any]) -> str:
    """An event in a few words."""
    data, agent = event.get("data") or {}, event.get("agent") or "the run"
    match event["type"]:
        case "approval_requested":
            return f"{agent} waits for the approval of {data.get('tool', 'a tool')}"
        case "tool_started":
            return f"{agent} uses {data.get('tool', 'a tool')}"
        case "finding":
            return f"{agent} found: {data.get('title', 'something')}"
        case kind:
            return f"{agent}: {str(kind).replace('_', ' ')}"


LIST_AGENTS = Tool(
    "list_agents",
    "List agents",
    "List the agents and pipelines that `run_agent` can run, each with what it is for.",
    ListAgentsArguments,
    Agents,
    list_agents,
)

RUN_AGENT = Tool(
    "run_agent",
    "Run an agent",
    "Run one of the local agents, such as a code auditor, and get its result. What an agent may only do with "
    "an approval, the user allows in Pravāha and not through this tool; where nobody is asked, it is denied.",
    RunAgentArguments,
    AgentRun,
    run_agent,
    read_only=False,
)
