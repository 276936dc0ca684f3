"""Prints the result of a run for people: findings, the rest of the output, notes."""

import json
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from agents.api.events import RunState
from agents.api.finding import Finding, Severity, merge_findings
from agents.outputs.base import found_instead
from agents.outputs.verdict import SHOWN_BY_HEADLINE, headline_of
from agents.pipelines.pipeline_run import PipelineResult
from agents.runs.result import RunResult
from app.commands.console import console
from app.text.safe_text import safe_line, safe_text

_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}


def print_result(result: RunResult) -> None:
    """The findings, worst first, then what else the agent delivered, and its notes."""
    out = console()
    if result.findings:
        out.print(findings_table(result.findings))
        out.print()
    for block in _other_output(result):
        out.print(block)
    for note in result.notes:
        out.print(Text(f"note: {safe_line(note)}", style="dim"))
    out.print(Text(_summary(result)))


def print_pipeline_result(result: PipelineResult) -> None:
    """The findings of all nodes, the output of the last one, and a line for each node."""
    out = console()
    findings = merge_findings([one for node in result.nodes.values() for one in node.findings])
    if findings:
        out.print(findings_table(findings))
        out.print()
    if result.result is not None:
        for block in _other_output(result.result):
            out.print(block)
    table = Table(box=None, pad_edge=False)
    for title in ("NODE", "STATE", "FINDINGS", "SECONDS", ""):
        table.add_column(title, justify="right" if title in ("FINDINGS", "SECONDS") else "left")
    for name, node in result.nodes.items():
        said = node.error or getattr(node.output, "cannot_do", "") or "; ".join(node.notes[:2])
        seconds = f"{node.usage.seconds:.1f}" if node.usage.seconds else ""
        count = str(len(node.findings)) if node.findings else ""
        table.add_row(name, node.state.value, count, seconds, Text(safe_line(said), style="dim"))
    out.print(table)
    error = f" {result.error}" if result.error else ""
    state = result.state.value.replace("_", " ")
    out.print(Text(f"\n{result.pipeline} ({result.run}): {state}.{error}"))


def findings_table(findings: list[Finding]) -> Table:
    """The findings with severity, place, rule, message and quote."""
    table = Table(box=None, pad_edge=False)
    table.add_column("SEVERITY", no_wrap=True)
    table.add_column("PLACE", no_wrap=True)
    table.add_column("RULE", no_wrap=True)
    table.add_column("WHAT")
    for one in findings:
        what = Group(
            Text(safe_line(one.message)),
            *(
                Text(f"  {safe_line(line)}", style="dim")
                for line in one.evidence.splitlines()[:3]
                if line.strip()
            ),
        )
        rule = one.rule if one.cwe is None else f"{one.rule} CWE-{one.cwe}"
        place = f"{safe_line(one.file)}:{one.line}" if one.line else safe_line(one.file)
        table.add_row(Text(one.severity.value, style=_STYLES[one.severity]), place, rule, what)
    return table


def _other_output(result: RunResult) -> list[Any]:
    """The members of the output beside its findings; text as text, structures as JSON."""
    if result.output is None:
        return []
    blocks: list[Any] = []
    members = result.output.model_dump(mode="json")
    headline = headline_of(members)
    if headline:
        blocks.append(Text(safe_line(headline), style="bold"))
        members = {key: value for key, value in members.items() if key not in SHOWN_BY_HEADLINE}
    for name, value in members.items():
        if name == "findings" or value in (None, "", [], {}):
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        if (isinstance(value, str) and "\n" not in value) or not isinstance(
            value, str | list | dict
        ):
            blocks.append(Text.assemble((f"{name.replace('_', ' ')}: ", "bold"), safe_line(shown)))
        else:
            blocks.append(Text(name.replace("_", " "), style="bold"))
            blocks += [Text(f"  {line}") for line in safe_text(shown).split("\n")]
    return [*blocks, ""] if blocks else []


def _summary(result: RunResult) -> str:
    counts = [
        f"{number} {severity.value}"
        for severity in reversed(Severity)
        if (number := sum(one.severity is severity for one in result.findings))
    ]
    members = {} if result.output is None else result.output.model_dump(mode="json")
    found = ", ".join(counts) or found_instead(members)
    state = "" if result.state is RunState.OK else f" {result.state.value.replace('_', ' ')}."
    error = f" {result.error}" if result.error else ""
    model = result.model or "without a model"
    return f"{result.agent}: {found}; {result.usage.seconds:.1f} s, {model}.{state}{error}"
