"""`RunEvent`: an entry of a run's append-only event log.

The screen, the HTTP stream and `trajectory.jsonl` all derive from this log.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class RunEventType(StrEnum):
    """What an event reports."""

    RUN_STATE = "run_state"
    NODE_STATE = "node_state"
    STEP_STARTED = "step_started"
    STEP_FINISHED = "step_finished"
    TOKEN_DELTA = "token_delta"  # noqa: S105
    ACTION_CHOSEN = "action_chosen"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_RESOLVED = "approval_resolved"
    TOOL_STARTED = "tool_started"
    TOOL_OUTPUT = "tool_output"
    TOOL_FINISHED = "tool_finished"
    FINDING = "finding"
    DECISION = "decision"
    PATCH_PROPOSED = "patch_proposed"
    PATCH_ACCEPTED = "patch_accepted"
    PATCH_REJECTED = "patch_rejected"
    WIDTH_STARTED = "width_started"
    """Candidates are going to be written: `agents.width` documents this and the next three."""
    CANDIDATE_WRITTEN = "candidate_written"
    CANDIDATE_CHECKED = "candidate_checked"
    CANDIDATE_CHOSEN = "candidate_chosen"
    SUSPECTS = "suspects"
    """What the fault of a failing test may lie in, and what was tried: `agents.repair.failing_tests`."""
    SLIPS_TRIED = "slips_tried"
    MODEL_ASKED = "model_asked"
    BUDGET = "budget"
    GUARDRAIL = "guardrail"
    MEMORY = "memory"
    NOTE = "note"
    ERROR = "error"


class RunState(StrEnum):
    """The state of a run or of a pipeline's node."""

    PENDING = "pending"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    TIMED_OUT = "timed_out"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXHAUSTED = "exhausted"

    @property
    def finished(self) -> bool:
        """Whether no other state follows."""
        return self not in (RunState.PENDING, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One event.

    Attributes:
        sequence: number in the run's log, from 0, without gaps.
        time: Unix seconds.
        run: the run's id.
        type: what is reported.
        node: name of the pipeline's node, empty for a run of one agent.
        agent: the agent's key, empty for events of the whole run.
        parent: id of the run that started this one, or empty.
        data: JSON members that depend on `type`.
    """

    sequence: int
    time: float
    run: str
    type: RunEventType
    node: str = ""
    agent: str = ""
    parent: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def event_fields(event: RunEvent) -> dict[str, Any]:
    """The event as JSON members."""
    return asdict(event)


def event_from_fields(data: dict[str, Any]) -> RunEvent:
    """The inverse of `event_fields`."""
    return RunEvent(**{**data, "type": RunEventType(data["type"])})
