"""Findings that a task brings along in its inputs."""

from collections.abc import Mapping
from typing import Any

from agents.api.finding import Finding, finding_from_fields, merge_findings
from agents.procedures.procedure import AgentTask, ProcedureContext

MAX_GIVEN = 5_000


def given_findings(inputs: Mapping[str, Any]) -> list[Finding]:
    """The findings among a task's inputs, merged.

    An input is a finding, a list of findings, or an output with a member `findings`. What is none is ignored.
    """
    found: list[Finding] = []
    stack = list(inputs.values())
    while stack and len(found) < MAX_GIVEN:
        value = stack.pop()
        if isinstance(value, list):
            stack += value
        elif isinstance(value, Mapping):
            if "rule" in value and "file" in value:
                finding = _finding(value)
                found += [finding] if finding is not None else []
            else:
                stack += [value.get("findings"), value.get("finding")]
    return merge_findings(found)


def _finding(value: Mapping[str, Any]) -> Finding | None:
    defaults = {
        "end_line": value.get("line"), "message": "", "evidence": "", "confidence": 1.0,
        "detector": "", "cwe": None, "reference": None, "source": "detector",
    }  # fmt: skip
    try:
        return finding_from_fields({**defaults, **value})
    except (KeyError, ValueError, TypeError):
        return None


async def findings_to_repair(task: AgentTask, context: ProcedureContext) -> list[Finding]:
    """The findings given, or those of the agent's own detectors if none are; worst first.

    `finding_id` among the inputs, or an id in the task's words, selects one.
    """
    findings = given_findings(task.inputs) or await context.detect()
    wanted = str(task.inputs.get("finding_id") or "")
    chosen = [one for one in findings if one.id == wanted or (one.id in task.text and not wanted)]
    return chosen or ([] if wanted else findings)
