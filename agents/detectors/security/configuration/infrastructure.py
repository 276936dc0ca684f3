"""The detector `infrastructure`: Terraform and Kubernetes resources open to everybody or with all rights."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.security.configuration.yaml_paths import entries
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
OPEN_NETWORK = Rule("open-network", _HIGH, "Open to every address", cwe=284)
PUBLIC_DATA = Rule("public-data", _HIGH, "Data readable by everybody", cwe=732)
UNENCRYPTED = Rule("encryption-off", _MEDIUM, "Encryption switched off", cwe=311)
ALL_RIGHTS = Rule("all-rights", _HIGH, "All rights granted", cwe=250)
PLAIN_SECRET = Rule("secret-in-manifest", _HIGH, "Secret in a manifest", cwe=798)
RULES = (OPEN_NETWORK, PUBLIC_DATA, UNENCRYPTED, ALL_RIGHTS, PLAIN_SECRET)

_PUBLIC_ACL = re.compile(
    r"\bacl\s*=\s*\"public-read(-write)?\"|\bpredefined_acl\s*=\s*\"publicRead|\bmember(s)?\s*=.*\"all(Authenticated)?Users\""
)
_PUBLIC_FLAG = re.compile(
    r"^\s*(publicly_accessible|public_network_access_enabled|allow_blob_public_access|allow_nested_items_to_be_public)\s*=\s*true"
)
_BLOCK_OFF = re.compile(
    r"^\s*(block_public_acls|block_public_policy|restrict_public_buckets|ignore_public_acls)\s*=\s*false"
)
_PLAIN = re.compile(
    r"^\s*(storage_encrypted|encrypted|encrypt|enable_https_traffic_only|encryption_at_rest_enabled|transit_encryption_enabled|at_rest_encryption_enabled)\s*=\s*false"
)
_ANY = re.compile(r"\"(0\.0\.0\.0/0|::/0)\"")
_ACTION = re.compile(r"\"?Action\"?\s*[=:]\s*(\[\s*)?\"\*\"|^\s*actions\s*=\s*\[\s*\"\*\"")
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
            yield OPEN_NETWORK.at(file, number, "Every address may connect: name the networks.")
        elif _PUBLIC_ACL.search(text) or _PUBLIC_FLAG.search(text) or _BLOCK_OFF.search(text):
            yield PUBLIC_DATA.at(file, number, "Everybody may read or reach it.")
        elif _PLAIN.search(text):
            yield UNENCRYPTED.at(file, number, "Data lies or travels unencrypted.")
        elif _ACTION.search(text):
            yield ALL_RIGHTS.at(
                file, number, "The policy grants every action: list those that are needed."
            )


def _policies(file: SourceFile) -> Iterator[Finding]:
    for entry in entries(file):
        if entry.path and entry.path[-1] == "Action" and entry.value == "*":
            yield ALL_RIGHTS.at(
                file, entry.line, "The policy grants every action: list those that are needed."
            )
        elif (
            entry.path
            and entry.path[-1] in ("Principal", "AWS")
            and entry.value == "*"
            and "Principal" in entry.path
        ):
            yield OPEN_NETWORK.at(file, entry.line, "Everybody may use it.", severity=_MEDIUM)
        elif entry.path and entry.path[-1] == "CidrIp" and entry.value == "0.0.0.0/0":
            yield OPEN_NETWORK.at(file, entry.line, "Every address may connect: name the networks.")


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
            yield ALL_RIGHTS.at(
                file,
                entry.line,
                "The role may do everything with everything.",
                end_line=entry.line + 1,
            )
        elif entry.path[-2:] == ("roleRef", "name") and entry.value == "cluster-admin":
            yield ALL_RIGHTS.at(file, entry.line, "The account rules the whole cluster.")
        elif last == "name" and "env" in entry.path:
            named = entry.value
        elif last == "value" and "env" in entry.path:
            if (
                _SECRET.search(named)
                and not re.search(r"(?i)_(file|path|name|url|header)$", named)
                and not _NO_VALUE.search(entry.value)
            ):
                yield PLAIN_SECRET.at(
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
            yield OPEN_NETWORK.at(
                file,
                entry.line,
                "The load balancer answers every address.",
                severity=_LOW,
                confidence=0.5,
            )


INFRASTRUCTURE = Detector(
    "infrastructure",
    "Reads Terraform, policies and Kubernetes manifests for resources that are open or may do everything.",
    _detect,
    RULES,
)
