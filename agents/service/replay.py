"""Replaying a recorded run: the same agent on the same files, with the answers of the record.

Procedures, detectors and reading tools run again; the model, the approver and all tools with side effects
answer from the record, so a replay changes nothing. It shows whether program, agent and files still lead to
the same events.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.api.errors import InvalidTask, PermissionDenied
from agents.api.events import RunEvent, RunEventType
from agents.cluster import Cluster
from agents.model.recorded_session import ReplayedSession
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.agent_run import AgentRun
from agents.runs.approvals import ApprovalRequest, Approvals
from agents.runs.run_guard import RunGuard
from agents.service.recording import Recording
from agents.steps.model_phase import StepsPhase
from agents.tools.tool import Effect, Taint, Tool, ToolContext, ToolOutput

if TYPE_CHECKING:
    from engine.clients.engine_client import EngineClient

_CHANGES = frozenset(["approval", "seconds", "start", "end", "width"])
"""Members of events that differ from run to run: ids and times."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event that is not as recorded; None where one of the two runs has no more events."""

    number: int
    recorded: Mapping[str, Any] | None
    replayed: Mapping[str, Any] | None


class _ReplayedApprovals(Approvals):
    """Answers each question as the record does."""

    def __init__(self, events: Sequence[RunEvent], *, has_approver: bool) -> None:
        super().__init__(has_approver=has_approver)
        self._answers = deque(
            event.data for event in events if event.type is RunEventType.APPROVAL_RESOLVED
        )

    async def ask(self, request: ApprovalRequest) -> None:
        """See `Approvals.ask`."""
        answer = self._answers.popleft() if self._answers else None
        if answer is None or answer["tool"] != request.tool:
            raise PermissionDenied(f"The recording has no answer for {request.tool}.")
        if not answer["allowed"]:
            raise PermissionDenied(answer["reason"])


async def replay(
    recording: Recording,
    registry: Registry,
    roster: Roster,
    client: "EngineClient | None",
    *,
    guard: RunGuard | None = None,
    on_event: Callable[[RunEvent], None] = lambda event: None,
) -> list[RunEvent]:
    """Run the recorded agent again; its events.

    Args:
        recording: the record.
        registry: what is registered.
        roster: the agents.
        client: an engine with the recorded model, for its tokenizer; None if no model took part.
        guard: the guardrails, as `Cluster` takes them.
        on_event: called with each event.

    Raises:
        UnknownAgent: there is no such agent any more.
        InvalidTask: a path does not exist, another model is loaded, the agent uses MCP servers, or the run
            recalled memories.
    """
    outputs = _recorded_outputs(recording.events)
    tools = {
        name: tool if _reads_files(tool) else _answering(tool, outputs[name])
        for name, tool in registry.tools.items()
    }
    phase = None
    if recording.model:
        if client is None:
            raise InvalidTask("The recording needs its model, for the tokenizer.")
        session = ReplayedSession(client, recording.answers)
        if session.identity() != recording.model:
            raise InvalidTask("The recording was made with another model: load that one.")
        phase = StepsPhase(session, registry.catalogue, profile=recording.profile)
    if roster.get(recording.key).mcp_servers:
        # Its approvals would be recorded ones, and nobody has seen what the servers offer today.
        raise InvalidTask(f"A run of {recording.key} cannot be replayed: it uses MCP servers.")
    if any(_recalled(event) for event in recording.events):
        raise InvalidTask(
            f"The run of {recording.key} cannot be replayed: it recalled memories, which are not recorded."
        )
    cluster = Cluster(
        registry=replace(registry, tools=tools),
        roster=roster,
        model=phase,
        approvals=_ReplayedApprovals(recording.events, has_approver=recording.has_approver),
        mode=recording.mode,
        guard=guard,
    )
    events: list[RunEvent] = []

    def follow(event: RunEvent) -> None:
        events.append(event)
        on_event(event)

    def started(run: AgentRun) -> None:
        run.log.follow(follow)

    await cluster.run(
        recording.key,
        recording.paths,
        task=recording.task,
        document=recording.document,
        base=Path(recording.base) if recording.base else None,
        budget=recording.budget,
        on_start=started,
    )
    return events


def _recalled(event: RunEvent) -> bool:
    return event.type is RunEventType.MEMORY and event.data.get("action") == "recalled"


def _reads_files(tool: Tool) -> bool:
    """Whether a replay calls the tool: it changes nothing, and depends on the files alone."""
    return tool.effects <= {Effect.READ} and tool.name != "memory"


def _recorded_outputs(events: Sequence[RunEvent]) -> dict[str, deque[Mapping[str, Any]]]:
    outputs: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
    for event in events:
        if event.type is RunEventType.TOOL_FINISHED:
            outputs[event.data["tool"]].append(event.data)
    return outputs


def _answering(tool: Tool, outputs: deque[Mapping[str, Any]]) -> Tool:
    """The tool with the recorded outputs instead of its effects."""

    async def call(arguments: Any, context: ToolContext) -> ToolOutput:
        if not outputs:
            return ToolOutput(f"The recording has no further call of {tool.name}.", failed=True)
        data = outputs.popleft()
        taint = frozenset(Taint(label) for label in data["taint"])
        more = {name: data[name] for name in ("status",) if name in data}
        return ToolOutput(data["text"], more, failed=data["failed"], taint=taint)

    return replace(tool, call=call)


def first_difference(
    recorded: Sequence[RunEvent], replayed: Sequence[RunEvent]
) -> Difference | None:
    """The first event that differs in more than ids and times, or None.

    Events of the memory are not compared: a replay leaves no episode.
    """
    recorded, replayed = (
        [event for event in events if event.type is not RunEventType.MEMORY]
        for events in (recorded, replayed)
    )
    for number in range(max(len(recorded), len(replayed))):
        one = _comparable(recorded[number]) if number < len(recorded) else None
        other = _comparable(replayed[number]) if number < len(replayed) else None
        if one != other:
            return Difference(number, one, other)
    return None


def _comparable(event: RunEvent) -> dict[str, Any]:
    data = {name: value for name, value in event.data.items() if name not in _CHANGES}
    return {"type": event.type.value, "node": event.node, "agent": event.agent, **_plain(data)}


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it: a recorded event was read from there."""
    plain: dict[str, Any] = json.loads(json.dumps(data))
    return plain
