"""The final gate: schemas hold, the gates have results, tests pass, no critical finding is open."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.api.finding import Finding, Severity, merge_findings
from agents.outputs.base import output_models
from agents.outputs.findings import FindingRecord
from agents.outputs.verdict import Verdict
from agents.procedures.audit.given_findings import given_findings
from agents.procedures.audit.project_tests import project_tests
from agents.procedures.audit.score import SCORED, score_of, score_text
from agents.procedures.audit.tests_outcome import has_code, tests_outcome
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.specs.packaged import GATES

DEFAULT_BAR = 70
MAX_FINDINGS = 200


async def run(task: AgentTask, context: ProcedureContext) -> Verdict:
    """Verify the outputs of earlier nodes, given by name in the inputs, and the workspace's own findings.

    Beside outputs the inputs may have `tests` (`{"passed": n, "failed": n}`), `bar` (0 to 100) and `schemas`
    (name of an output model by node). Without `tests`, those of the project are run, if the agent has a
    shell and it is allowed. Without any input only the workspace is judged.

    Program code passes by its tests alone: where they cannot run, or there are none, nothing else that is
    wrong fails it, and otherwise it is not judged.
    """
    if not task.inputs and not len(task.workspace):
        return Verdict(cannot_do="There is neither an earlier result nor a file to verify.")
    found = merge_findings([*given_findings(task.inputs), *await context.detect()])
    tests: Mapping[str, Any] = {}
    if has_code(task.workspace) or isinstance(task.inputs.get("tests"), Mapping):
        tests = await project_tests(task, context)
    failed, unjudged, outcome = tests_outcome(tests)
    reasons = [*_schema_reasons(task.inputs), *_gate_reasons(task.inputs)]
    reasons += [failed] if failed else []
    bar = _bar(task.inputs.get("bar"))
    score = score_of(found)
    critical = [finding for finding in found if finding.severity is Severity.CRITICAL]
    if critical:
        reasons.append(f"{_are_open(len(critical))}, first {_place(critical[0])}.")
    broken = [finding for finding in found if finding.rule == "syntax-error"]
    if broken:
        reasons.append(f"{_place(broken[0])} does not parse.")
    if score < bar:
        reasons.append(f"The score of {score} is below the bar of {bar}.")
    passed = False if reasons else None if unjudged else True
    used = str(tests.get("used") or "")
    output = tests.get("output")
    details = [used, f"Their output is in {output}." if output else ""]
    if unjudged and passed is not None:
        details.insert(0, unjudged)
    every = (score_text(found, outcome), *reasons, *filter(None, details))
    return Verdict(
        score=score,
        score_of=SCORED,
        passed=passed,
        not_judged=unjudged[:300] if passed is None else "",
        reasons=[reason[:300] for reason in every],
        findings=[FindingRecord.of(finding) for finding in found[:MAX_FINDINGS]],
    )


def _are_open(count: int) -> str:
    return "1 critical finding is open" if count == 1 else f"{count} critical findings are open"


def _place(finding: Finding) -> str:
    return f"{finding.file}:{finding.line} ({finding.rule})"[:200]


def _bar(value: Any) -> int:
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
    return int(value) if valid else DEFAULT_BAR


def _schema_reasons(inputs: Mapping[str, Any]) -> list[str]:
    models = output_models()
    named = inputs.get("schemas")
    reasons = []
    for node, name in named.items() if isinstance(named, Mapping) else ():
        model = models.get(str(name))
        if model is None:
            reasons.append(f"There is no output schema {name!r:.60}.")
        elif node not in inputs:
            reasons.append(f"The result of {node!s:.60} is missing.")
        else:
            try:
                model.model_validate(inputs[node])
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(str(part) for part in first["loc"]) or "result"
                reasons.append(
                    f"{node!s:.60} does not match {name!s:.60}: {where}: {first['msg']}."
                )
    for node, value in inputs.items():
        if isinstance(value, Mapping) and value.get("cannot_do"):
            reasons.append(f"{node:.60} could not do its task: {value['cannot_do']!s:.200}")
    return reasons


def _gate_reasons(inputs: Mapping[str, Any]) -> list[str]:
    """A gate that ran must have a result; required ones are named in `gates`."""
    required = inputs.get("gates")
    names = [str(name) for name in required] if isinstance(required, list) else []
    missing = [name for name in dict.fromkeys([*names]) if not inputs.get(name)]
    present = [name for name in GATES if name in inputs and not isinstance(inputs[name], Mapping)]
    return [f"The gate {name:.60} has no result." for name in dict.fromkeys([*missing, *present])]
