"""The detector `infrastructure`: Terraform and Kubernetes resources open to everybody or with all rights."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleFile
from agents.detectors.security.configuration.yaml_paths import entries
from agents.detectors.security.pattern_rules import PatternRule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "infrastructure", entry=PatternRule)

_ANY = re.compile(r"\"(0\.0\.0\.0/0|::/0)\"")
_SECRET = re.compile(r"(?i)(passw(or)?d|secret|token|api_?key|private_?key|credential)")
_NO_VALUE = re.compile(
    r"^\s*$|\$\{|\$\(|\{\{|^(changeme|example|placeholder|<.*>)$|^/|^https?://", re.I
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("terraform", "yaml", "json"):
        context.check_cancelled()
        if file.language == "terraform":
            yield from _terraform(file)
        elif re.search(r"(?m)^\s*[\"']?(apiVersion|kind)[\"']?\s*:", file.text):
            yield from _kubernetes(file)
        elif re.search(r"\"Statement\"|AWSTemplateFormatVersion|(?m:^\s*Statement:)", file.text):
            yield from _policies(file)


def _terraform(file: SourceFile) -> Iterator[Finding]:
    block = ""
    for number, line in enumerate(file.lines, 1):
        text = line.split("#", 1)[0]
        if match := re.search(r"^\s*(ingress|egress)\b", text):
            block = match[1]
        if re.search(r"^\s*type\s*=\s*\"(ingress|egress)\"", text):
            block = "ingress" if "ingress" in text else "egress"
        if (
            _ANY.search(text)
            and re.search(r"cidr|source_range|source_address|ranges", text)
            and block != "egress"
        ):
            yield RULES["open-network"].at(file, number)
            continue
        for entry in RULES.entries.values():
            if any(one.pattern.search(text) for one in entry.lines):
                yield entry.rule.at(file, number)
                break


def _policies(file: SourceFile) -> Iterator[Finding]:
    for entry in entries(file):
        if entry.path and entry.path[-1] == "Action" and entry.value == "*":
            yield RULES["all-rights"].at(file, entry.line)
        elif (
            entry.path
            and entry.path[-1] in ("Principal", "AWS")
            and entry.value == "*"
            and "Principal" in entry.path
        ):
            yield RULES["open-network"].at(
                file, entry.line, "Everybody may use it.", severity=Severity.MEDIUM
            )
        elif entry.path and entry.path[-1] == "CidrIp" and entry.value == "0.0.0.0/0":
            yield RULES["open-network"].at(file, entry.line)


def _kubernetes(file: SourceFile) -> Iterator[Finding]:
    found = entries(file)
    wildcard = {entry.path[-1] for entry in found if entry.path and entry.value == "*"}
    named = ""
    for entry in found:
        last = entry.path[-1] if entry.path else ""
        if (
            last == "resources"
            and entry.value == "*"
            and "rules" in entry.path
            and "verbs" in wildcard
        ):
            yield RULES["all-rights"].at(
                file,
                entry.line,
                "The role may do everything with everything.",
                end_line=entry.line + 1,
            )
        elif entry.path[-2:] == ("roleRef", "name") and entry.value == "cluster-admin":
            yield RULES["all-rights"].at(file, entry.line, "The account rules the whole cluster.")
        elif last == "name" and "env" in entry.path:
            named = entry.value
        elif last == "value" and "env" in entry.path:
            if (
                _SECRET.search(named)
                and not re.search(r"(?i)_(file|path|name|url|header)$", named)
                and not _NO_VALUE.search(entry.value)
            ):
                yield RULES["secret-in-manifest"].at(
                    file,
                    entry.line,
                    f"{named} can be read here: use a Secret.",
                    evidence=f"{named}: {entry.value[:2]}…",
                )
            named = ""
        elif (
            last == "type"
            and entry.value == "LoadBalancer"
            and "loadBalancerSourceRanges" not in file.text
        ):
            yield RULES["open-network"].at(
                file,
                entry.line,
                "The load balancer answers every address.",
                severity=Severity.LOW,
                confidence=0.5,
            )


INFRASTRUCTURE = Detector(
    "infrastructure",
    "Reads Terraform, policies and Kubernetes manifests for resources that are open or may do everything.",
    _detect,
    RULES,
)
