"""Findings as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), one run for one result.

Paths are relative to `%SRCROOT%`, so that code-scanning services show them on a repository's own files.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, Rule
from agents.runs.result import RunResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Mapping[Severity, str] = {
    Severity.INFO: "note",
    Severity.LOW: "note",
    Severity.MEDIUM: "warning",
    Severity.HIGH: "error",
    Severity.CRITICAL: "error",
}
_SECURITY_SEVERITY: Mapping[Severity, str] = {
    Severity.INFO: "0.0",
    Severity.LOW: "3.0",
    Severity.MEDIUM: "5.5",
    Severity.HIGH: "8.0",
    Severity.CRITICAL: "9.5",
}
"""Scores that code-scanning services sort by; the middle of each CVSS v3 band."""


def sarif_log(
    result: RunResult, detectors: Iterable[Detector], *, root: Path, version: str
) -> dict[str, Any]:
    """A SARIF log of one result.

    Args:
        result: the finished run.
        detectors: those that took part; their rules are described in the log.
        root: folder that the findings' paths are relative to.
        version: Pravāha's version.
    """
    known = {(d.name, rule.id): rule for d in detectors for rule in d.rules}
    findings = result.findings
    rules: dict[str, dict[str, Any]] = {}
    for finding in findings:
        rule = known.get((finding.detector, finding.rule))
        rules.setdefault(_rule_id(finding), _rule_object(finding, rule))
    index = {rule_id: number for number, rule_id in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": f"pravaha {result.agent}",
                        "version": version,
                        "rules": list(rules.values()),
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": not result.error,
                        "toolExecutionNotifications": [
                            {"level": "note", "message": {"text": note}} for note in result.notes
                        ],
                    }
                ],
                "originalUriBaseIds": {"SRCROOT": {"uri": root.absolute().as_uri() + "/"}},
                "columnKind": "unicodeCodePoints",
                "results": [_result_object(one, index[_rule_id(one)]) for one in findings],
            }
        ],
    }


def _rule_id(finding: Finding) -> str:
    return f"{finding.detector or 'model'}/{finding.rule}"


def _rule_object(finding: Finding, rule: Rule | None) -> dict[str, Any]:
    tags = [] if finding.cwe is None else [f"external/cwe/cwe-{finding.cwe:03d}", "security"]
    title = finding.rule if rule is None else rule.title
    return {
        "id": _rule_id(finding),
        "shortDescription": {"text": title},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {
            "tags": tags,
            **({"security-severity": _SECURITY_SEVERITY[finding.severity]} if tags else {}),
        },
    }


def _result_object(finding: Finding, rule_index: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "SRCROOT"}
    }
    if finding.line > 0:
        location["region"] = {"startLine": finding.line, "endLine": finding.end_line}
        if finding.evidence:
            location["region"]["snippet"] = {"text": finding.evidence}
    return {
        "ruleId": _rule_id(finding),
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message or finding.rule},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"findingId/v1": finding.id},
        "rank": round(finding.confidence * 100, 1),
        "properties": {
            "severity": finding.severity.value,
            "source": finding.source,
            **({} if finding.reference is None else {"reference": finding.reference}),
        },
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path, safe="/")
