"""The final answer of a reviewing agent: findings of the model, each of which must quote the file.

A finding without a quote that is in the named file is dropped. Those that stay have a low confidence and
the source `model`: nothing but a model claims them.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agents.api.finding import Finding, Severity, merge_findings
from agents.outputs.base import Part
from agents.outputs.findings import FindingRecord, Findings
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MODEL_CONFIDENCE = 0.3
RULE = "model"
_MIN_QUOTE = 8


class ReportedFinding(Part):
    """A finding as the model writes it; the quote must be in the file."""

    file: str = Field(max_length=120)
    quote: str = Field(max_length=120, min_length=_MIN_QUOTE)
    severity: Severity
    message: str = Field(max_length=200)


class ReportedFindings(Part):
    """What the model found beside the findings it was shown."""

    findings: list[ReportedFinding] = Field(max_length=3)


def add_reported(
    output: Findings, answer: Mapping[str, Any], workspace: Workspace
) -> tuple[Findings, int]:
    """The output with the reported findings whose quote is in their file, and how many were dropped.

    Raises:
        pydantic.ValidationError: the answer is not one of `ReportedFindings`.
    """
    reported = ReportedFindings.model_validate(dict(answer)).findings
    found = [one for one in (_located(report, workspace) for report in reported) if one is not None]
    known = {(record.file, record.line) for record in output.findings}
    new = [one for one in merge_findings(found) if (one.file, one.line) not in known]
    records = [*output.findings, *map(FindingRecord.of, new)]
    return output.model_copy(update={"findings": records}), len(reported) - len(found)


def _located(report: ReportedFinding, workspace: Workspace) -> Finding | None:
    file = workspace.get(report.file)
    line = None if file is None else _line_of(report.quote, file)
    if file is None or line is None:
        return None
    return Finding(
        file=file.path,
        line=line,
        end_line=line,
        rule=RULE,
        severity=report.severity,
        message=report.message,
        evidence=file.quote(line),
        confidence=MODEL_CONFIDENCE,
        source="model",
    )


def _line_of(quote: str, file: SourceFile) -> int | None:
    """The first line that contains the first line of a quote, whatever its spaces."""
    wanted = " ".join(quote.strip().split("\n")[0].split())
    if len(wanted) < _MIN_QUOTE:
        return None
    for number, text in enumerate(file.lines, 1):
        if wanted in " ".join(text.split()):
            return number
    return None
