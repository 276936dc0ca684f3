"""`RunUpdates`: the events of an agent's run as updates of a session."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from acp.helpers import start_tool_call, update_tool_call
from acp.schema import ToolCallLocation

from agents.api.events import RunEvent, RunEventType, RunState
from agents.outputs.finding_markdown import finding_markdown
from app.acp.tool_updates import (
    arguments_of,
    kind_of,
    locations_of,
    nodes_plan,
    text_content,
    title_of,
    todo_plan,
)

MAX_FINDINGS = 100
"""Findings that are shown while a run goes on."""
_FINISHED = tuple(state.value for state in RunState if state.finished)


class RunUpdates:
    """Folds the events of one run.

    The run is one call of a tool in the client's eyes, and each call that it makes another one. A pipeline's
    nodes are a plan. What is found is shown with its places, so that an editor can follow.

    Attributes:
        call: the id of the run's own call.
        announced: the calls that are to be asked about, by the approval's id; the caller takes them out.
    """

    def __init__(self, run: str, name: str, folder: Path, paths: Sequence[Path]) -> None:
        """A run that works in `folder` on `paths`."""
        self.call = run
        self.announced: dict[str, str] = {}
        self._asked: dict[str, str] = {}  # calls by approval
        self._name = name
        self._folder = folder
        self._paths = paths
        self._started = 0
        self._running: dict[tuple[str, str], str] = {}  # the last call by node and agent
        self._nodes: dict[str, str] = {}
        self._found: list[str] = []
        self._places: list[ToolCallLocation] = []
        self._known: set[str] = set()

    def begin(self) -> Any:
        """The update that shows the run."""
        return start_tool_call(
            self.call, f"@{self._name}", kind="think", status="in_progress", locations=[]
        )

    def finish(self, *, failed: bool, error: str) -> Iterator[Any]:
        """The updates at the end of the run."""
        for call in self._running.values():
            yield update_tool_call(call, status="failed")
        self._running.clear()
        yield update_tool_call(
            self.call,
            status="failed" if failed else "completed",
            content=text_content(error) if error else None,
        )

    def take(self, event: RunEvent) -> Iterator[Any]:
        """The updates of an event."""
        data = event.data
        match event.type:
            case RunEventType.TOOL_STARTED:
                yield self._start(event)
            case RunEventType.TOOL_FINISHED:
                call = self._running.pop((event.node, event.agent), None)
                if call is not None:
                    yield update_tool_call(
                        call,
                        status="failed" if data.get("failed") else "completed",
                        content=text_content(str(data.get("text", ""))),
                    )
            case RunEventType.APPROVAL_REQUESTED:
                # The call begins once it is allowed: until then it is a call of its own.
                call = self._new_id()
                self._asked[str(data.get("approval"))] = call
                self.announced[str(data.get("approval"))] = call
                title = title_of(str(data.get("tool")), {"arguments": data.get("target", "")})
                yield start_tool_call(
                    call, title, kind=kind_of(str(data.get("tool"))), status="pending"
                )
            case RunEventType.APPROVAL_RESOLVED:
                known = self._asked.pop(str(data.get("approval")), None)
                if known is not None:
                    allowed = bool(data.get("allowed"))
                    yield update_tool_call(
                        known,
                        status="completed" if allowed else "failed",
                        content=None if allowed else text_content(str(data.get("reason", ""))),
                    )
            case RunEventType.FINDING:
                yield from self._find(data)
            case RunEventType.NODE_STATE if event.node:
                self._nodes[event.node] = str(data.get("state"))
                yield nodes_plan(self._nodes, _FINISHED)
            case RunEventType.RUN_STATE if data.get("nodes"):
                self._nodes = dict.fromkeys(data["nodes"], "pending") | self._nodes
                yield nodes_plan(self._nodes, _FINISHED)
            case RunEventType.STEP_STARTED:
                who = event.node or event.agent or self._name
                yield update_tool_call(self.call, title=f"@{self._name}: {who} thinks")
            case _:
                pass

    def _start(self, event: RunEvent) -> Any:
        tool = str(event.data.get("tool"))
        arguments = arguments_of(str(event.data.get("arguments", "")))
        call = self._running[event.node, event.agent] = self._new_id()
        plan = todo_plan(arguments) if tool == "todo" else None
        if plan is not None:
            return plan
        return start_tool_call(
            call,
            title_of(tool, arguments),
            kind=kind_of(tool),
            status="in_progress",
            locations=locations_of(arguments, self._folder),
            raw_input=arguments,
        )

    def _find(self, finding: Mapping[str, Any]) -> Iterator[Any]:
        if finding.get("id") in self._known or len(self._found) >= MAX_FINDINGS:
            return
        self._known.add(str(finding.get("id")))
        self._found.append(finding_markdown(finding))
        place = self._place(str(finding.get("file", "")))
        if place is not None:
            line = finding.get("line")
            known = line if isinstance(line, int) and line > 0 else None
            self._places.append(ToolCallLocation(path=str(place), line=known))
        yield update_tool_call(
            self.call,
            title=f"@{self._name}: {len(self._found)} found",
            content=text_content("\n".join(self._found)),
            locations=self._places,
        )

    def _place(self, file: str) -> Path | None:
        """The file of a finding: relative to one of the paths, or to their folders."""
        for base in (*self._paths, *(path.parent for path in self._paths), self._folder):
            if file and (base / file).is_file():
                return base / file
        return None

    def _new_id(self) -> str:
        self._started += 1
        return f"{self.call}-{self._started}"
