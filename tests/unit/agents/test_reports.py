"""Findings and SARIF."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from sarif_pydantic import Sarif

from agents.api.events import RunState
from agents.api.finding import (
    Finding,
    Severity,
    finding_fields,
    finding_from_fields,
    merge_findings,
)
from agents.detectors.detector import Detector, Rule
from agents.outputs.findings import FindingRecord, Findings
from agents.reports.sarif import sarif_log
from agents.runs.result import RunResult

FINDINGS = st.builds(
    Finding,
    file=st.sampled_from(["a.py", "b c/ü.py"]),
    line=st.integers(0, 3),
    end_line=st.integers(0, 5),
    rule=st.sampled_from(["r1", "r2"]),
    severity=st.sampled_from(Severity),
    message=st.text(max_size=600),
    evidence=st.text(max_size=400),
    confidence=st.floats(0, 1).map(lambda value: round(value, 3)),
    cwe=st.none() | st.integers(1, 3),
    detector=st.sampled_from(["d", "e"]),
    reference=st.none() | st.just("WCAG 1.4.3"),
)


@given(FINDINGS)
def test_a_finding_survives_json(finding):
    fields = json.loads(json.dumps(finding_fields(finding)))
    assert finding_from_fields({**fields, "severity": fields["severity"]}) == finding
    assert FindingRecord.of(finding).model_dump(mode="json") == fields


@given(st.lists(FINDINGS, max_size=12))
def test_merging_keeps_one_finding_for_each_place_and_rule_the_worst(findings):
    merged = merge_findings(findings)
    keys = [(one.file, one.line, one.rule) for one in merged]
    assert len(set(keys)) == len(keys)
    assert merge_findings(merged) == merged
    ranks = [one.severity.rank for one in merged]
    assert ranks == sorted(ranks, reverse=True)
    for one in findings:
        same = [
            kept
            for kept in merged
            if (kept.file, kept.line) == (one.file, one.line)
            and (kept.rule == one.rule or (one.cwe is not None and kept.cwe == one.cwe))
        ]
        assert any(kept.severity.rank >= one.severity.rank for kept in same)


@given(st.lists(FINDINGS, max_size=6))
def test_sarif_is_valid_and_has_every_finding(findings):
    output = Findings(findings=[FindingRecord.of(one) for one in findings])
    result = RunResult("run-1", "words", RunState.OK, output, notes=("a note",))
    detector = Detector("d", "", lambda *_: (), (Rule("r1", Severity.LOW, "A title"),))
    log = sarif_log(result, [detector], root=Path("/src"), version="1")
    parsed = Sarif.model_validate_json(json.dumps(log))
    (run,) = parsed.runs
    assert len(run.results or []) == len(findings)
    rules = run.tool.driver.rules or []
    for one in run.results or []:
        assert rules[one.rule_index].id == one.rule_id
