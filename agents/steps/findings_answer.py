"""The findings that a model reports: a file and a line that exist, by the grammar; quoted by program.

Files and lines are enumerated from the workspace, so nothing can be reported about what is not there, and no
quote can be wrong. Nothing but a model claims these findings: their confidence is low, their source `model`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import Field

from agents.api.finding import Finding, Severity, merge_findings
from agents.model.ask_all import Structured, shown
from agents.model.layout import SharedLayout, SharedPrompt
from agents.model.session import ModelSession, usage_of
from agents.outputs.base import Part
from agents.outputs.critique import Critique
from agents.outputs.findings import FindingRecord, Findings
from agents.procedures.procedure import AgentTask
from agents.steps.bounded_schema import STYLE
from agents.steps.closed_json import closed_json
from agents.steps.react import StepRun
from agents.steps.shared_document import shown_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, Request, SamplingParams

MODEL_CONFIDENCE = 0.3
RULE = "model"
MAX_REPORTED = 3
MAX_FILES = 60
"""Files that can be named; beyond them the schema would take longer to compile than the answer to write."""
MAX_ENUMERATED = 4_000
"""Lines up to which blank ones are left out of the grammar; with more, each file has a range of lines."""
MESSAGE_CHARS = 200
_TOKENS = 400
_REQUEST = (
    "Report defects that are not listed yet, at most {}: the file, the line, how severe it is, and what is "
    "wrong there. Report none if there are none."
)
EXAMPLE = (
    '{"findings": [{"file": "a.py", "line": 3, "severity": "high", "message": "…"}]}'
    ' or {"findings": []}'
)


class ReportedFinding(Part):
    """A finding as the model writes it."""

    file: str = Field(max_length=300)
    line: int = Field(ge=1)
    severity: Severity
    message: str = Field(max_length=MESSAGE_CHARS)


class ReportedFindings(Part):
    """What the model found beside the findings it was shown."""

    findings: list[ReportedFinding] = Field(max_length=MAX_REPORTED)


async def with_reported(
    output: Critique | Findings,
    task: AgentTask,
    run: StepRun,
    session: ModelSession,
    layout: SharedLayout,
    shared: SharedPrompt,
) -> Critique | Findings:
    """The output with the findings that the model reports beside those that it has.

    Raises:
        BudgetExhausted: there is no room for an answer.
        ModelFailure: the engine failed.
    """
    workspace = task.workspace
    if not len(workspace) and task.document:
        workspace = Workspace.of_texts({"document": task.document})
    if not len(workspace):
        return output
    schema = reported_schema(workspace)
    known = "\n".join(f"- {one.file}:{one.line} {one.message}" for one in output.findings[:20])
    listed = f"Listed already:\n{known}\n" if known else ""
    request = f"{run.card}\n{listed}{_REQUEST.format(MAX_REPORTED)}"
    question = shown(Structured(request, schema, EXAMPLE))
    prompt = (*shared.token_ids, *layout.tail(shared, question))
    sampling = SamplingParams(
        temperature=0.0,
        max_tokens=_TOKENS,
        grammar=Grammar.json_schema({"x-guidance": STYLE, **schema}),
    )
    generation = await session.generate(Request(prompt, sampling), run.meter)
    run.usage = run.usage.plus(usage_of([generation]))
    is_whole = generation.finish_reason is FinishReason.STOP
    answer = orjson.loads(generation.text) if is_whole else closed_json(generation.text, schema)
    records, dropped = add_reported(output.findings, answer, workspace)
    if dropped:
        run.note(f"{dropped} findings of the model name a blank line.")
    return output.model_copy(update={"findings": records})


def reported_schema(workspace: Workspace) -> dict[str, Any]:
    """The JSON schema of an answer about the files that a prompt shows: each with the lines that it has."""
    files = [file for file in shown_files(workspace) if file.text.strip()][:MAX_FILES]
    exact = sum(len(file.lines) for file in files) <= MAX_ENUMERATED
    items: dict[str, Any] = {
        "type": "array",
        "items": {"anyOf": [_about(file, exact=exact) for file in files]},
        "maxItems": MAX_REPORTED,
    }
    if not files:
        items = {"type": "array", "items": {"type": "null"}, "maxItems": 0}
    return _object({"findings": items})


def _about(file: SourceFile, *, exact: bool) -> dict[str, Any]:
    written = [number for number, text in enumerate(file.lines, 1) if text.strip()]
    line: dict[str, Any] = {"type": "integer", "minimum": written[0], "maximum": written[-1]}
    return _object(
        {
            "file": {"const": file.path},
            "line": {"enum": written} if exact else line,
            "severity": {"enum": [one.value for one in Severity]},
            "message": {"type": "string", "minLength": 1, "maxLength": MESSAGE_CHARS},
        }
    )


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def add_reported(
    known: Sequence[FindingRecord], answer: Mapping[str, Any], workspace: Workspace
) -> tuple[list[FindingRecord], int]:
    """Known findings and the reported ones, and how many of those name a blank line or none that exists.

    What is reported at a line that has a finding already is left out, and counted as neither.

    Raises:
        pydantic.ValidationError: the answer is not one of `ReportedFindings`.
    """
    reported = ReportedFindings.model_validate(dict(answer)).findings
    found = [one for one in (_located(report, workspace) for report in reported) if one is not None]
    taken = {(record.file, line) for record in known for line in _lines(record)}
    new = [one for one in merge_findings(found) if (one.file, one.line) not in taken]
    return [*known, *map(FindingRecord.of, new)], len(reported) - len(found)


def _lines(record: FindingRecord) -> range:
    return range(record.line, max(record.line, record.end_line) + 1)


def _located(report: ReportedFinding, workspace: Workspace) -> Finding | None:
    file = workspace.get(report.file)
    if file is None or report.line > len(file.lines) or not file.lines[report.line - 1].strip():
        return None
    return Finding(
        file=file.path,
        line=report.line,
        end_line=report.line,
        rule=RULE,
        severity=report.severity,
        message=report.message,
        evidence=file.quote(report.line),
        confidence=MODEL_CONFIDENCE,
        source="model",
    )
