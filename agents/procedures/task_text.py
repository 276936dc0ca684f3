"""What an execution agent works on: the text of a task, and whether it asks for a check of a given output."""

from collections.abc import Mapping
from typing import Any, get_args

from agents.api.finding import Finding
from agents.detectors.text.conventions import Kind, pairs_by_name
from agents.detectors.text.given import PROSE, given_files, named_inputs
from agents.outputs.findings import FindingRecord
from agents.procedures.procedure import AgentTask, ProcedureContext

MAX_DOCUMENT_CHARS = 60_000
"""The bound of `agents.outputs.base.Document`."""


def checks_output(task: AgentTask, kind: str = "output") -> bool:
    """Whether the task gives an output to check, instead of asking for one.

    Args:
        task: the task.
        kind: as in `AgentSpec.checks`: with a kind of files, a folder alone asks for a check, too, if files
            in it belong together by their names.
    """
    named: Kind | None = next((one for one in get_args(Kind) if one == kind), None)
    return "output" in inputs_of(task) or (named is not None and pairs_a_folder(task, named))


def pairs_a_folder(task: AgentTask, kind: Kind) -> bool:
    """Whether the task is nothing but files, some of which belong together by their names."""
    nothing_said = not task.text.strip() and not task.inputs and not task.document
    return nothing_said and bool(pairs_by_name(task.workspace, kind))


def inputs_of(task: AgentTask) -> Mapping[str, Any]:
    """The task's inputs, with the files that its words name to be checked."""
    return named_inputs(task.workspace, task.inputs, task.text)


async def findings_of(context: ProcedureContext) -> list[FindingRecord]:
    """Findings of the agent's detectors."""
    return records(await context.detect())


def records(findings: list[Finding]) -> list[FindingRecord]:
    """Findings as parts of an output."""
    return [FindingRecord.of(finding) for finding in findings]


def source_text(task: AgentTask, *names: str) -> str:
    """The text to work on: the first of these inputs, else the document, else the prose of the workspace."""
    for name in (*names, "text", "source"):
        if name in task.inputs:
            files = given_files(task.workspace, task.inputs, name)
            return "\n\n".join(file.text for file in files)
    if task.document:
        return task.document
    return "\n\n".join(file.text for file in task.workspace if file.language in PROSE)


def text_input(inputs: Mapping[str, Any], name: str, default: str = "") -> str:
    """An input that is a text, or the default."""
    value = inputs.get(name)
    return value if isinstance(value, str) else default


def bounded(text: str, limit: int) -> str:
    """A text of at most `limit` characters; a cut is marked."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
