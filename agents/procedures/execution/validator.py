"""`validator`: a verdict on an output against requirements: JSON schema, checklist, and unwritten parts.

Earlier results among the inputs are looked at too: one that could not be done fails the verdict.
"""

from collections.abc import Mapping
from typing import Any

from agents.detectors.text.checklist import check_items, checklist_items, checklist_name
from agents.detectors.text.given import given_files
from agents.outputs.findings import FindingRecord
from agents.outputs.verdict import Verdict
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import (
    bounded,
    findings_of,
    inputs_of,
    pairs_a_folder,
)

_MEMBERS = frozenset({"output", "source", "schema", "checklist", "requirements", "gaps"})
_RULES = frozenset(
    [
        "missing-part",
        "missing-field",
        "schema-violation",
        "unreadable-data",
        "broken-schema",
        "placeholder-text",
    ]
)


async def run(task: AgentTask, context: ProcedureContext) -> Verdict:
    """Compare the output of the task with its requirements."""
    inputs = inputs_of(task)
    earlier = {
        name: value
        for name, value in inputs.items()
        if name not in _MEMBERS and isinstance(value, Mapping)
    }
    has_requirements = any(
        name in inputs for name in ("source", "schema", "checklist", "requirements")
    )
    has_output = "output" in inputs or bool(task.document)
    by_name = pairs_a_folder(task, "schema") or pairs_a_folder(task, "checklist")
    if not earlier and not by_name and not (has_requirements and has_output):
        return Verdict(
            cannot_do="Give an `output`, and its requirements as `schema`, `checklist` or `source`."
        )
    found = [one for one in await findings_of(context) if one.rule in _RULES]
    covered, items = await context.in_thread(_covered, task)
    return judge_results(found, covered, items, earlier)


def judge_results(
    found: list[FindingRecord], covered: int, items: int, earlier: Mapping[str, Mapping[str, Any]]
) -> Verdict:
    """The verdict: passed if nothing is found, all items are covered and no earlier result is missing.

    Args:
        found: defects of the output.
        covered: checklist items that it covers.
        items: all checklist items.
        earlier: results of earlier agents by node name.
    """
    reasons = [bounded(f"{one.file}:{one.line}: {one.message}", 300) for one in found[:50]]
    failed = 0
    for name, result in earlier.items():
        reason = _gap(result)
        if reason:
            failed += 1
            reasons.append(bounded(f"{name}: {reason}", 300))
    checks = len(found) + items + len(earlier) + 1
    passed_checks = covered + (len(earlier) - failed) + 1
    passed = not found and not failed and covered == items
    if passed:
        reasons.append(f"All {max(1, checks - 1)} checks passed.")
    score = round(100.0 if passed else min(99.0, 100 * passed_checks / checks), 1)
    scored = f"{checks} checks of the output against its requirements"
    reasons.append(f"{score:g} of 100 by {scored}.")
    return Verdict(
        score=score,
        score_of=scored,
        passed=passed,
        reasons=reasons,
        findings=found,
    )


def _gap(result: Mapping[str, Any]) -> str:
    """Why an earlier result is no result; empty if it is one."""
    if result.get("cannot_do"):
        return str(result["cannot_do"])
    if result.get("missing"):
        return f"missing: {', '.join(str(one) for one in result['missing'][:10])}."
    if result.get("abstained"):
        return "no label was clearly the best."
    if result.get("not_judged"):
        return f"was not judged: {result['not_judged']}"
    if result.get("passed") is False:
        return "did not pass."
    content = {name: value for name, value in result.items() if name != "cannot_do"}
    return (
        "" if any(value not in ("", [], {}, None, 0) for value in content.values()) else "is empty."
    )


def _covered(task: AgentTask) -> tuple[int, int]:
    """Checklist items that the output covers, and all of them."""
    inputs = inputs_of(task)
    lists = given_files(task.workspace, inputs, checklist_name(inputs))
    prose = [file for file in lists if not file.text.lstrip().startswith(("{", "["))]
    items = [item for file in prose for item in checklist_items(file.text)]
    outputs = given_files(task.workspace, inputs, "output", task.document)
    text = "\n\n".join(file.text for file in outputs)
    if not items or text.lstrip().startswith(("{", "[")):
        return 0, 0
    checked = check_items(items, text)
    return sum(1 for item in checked if item.line), len(checked)
