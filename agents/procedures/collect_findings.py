"""The procedure of an agent whose result is the findings of its detectors."""

from agents.outputs.findings import FindingRecord, Findings
from agents.procedures.procedure import AgentTask, ProcedureContext


async def collect_findings(task: AgentTask, context: ProcedureContext) -> Findings:
    """Run all detectors of the agent over the workspace."""
    if not len(task.workspace):
        return Findings(cannot_do="There are no text files to look at.")
    found = await context.detect()
    return Findings(findings=[FindingRecord.of(finding) for finding in found])
