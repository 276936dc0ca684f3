"""bandit 1.9 over a copy of the Python files, its severities and noise corrected."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.security.leaked_secrets import redacted
from agents.workspace.workspace import Workspace

BANDIT_S = 120.0
_NOISE = frozenset(
    ["B101", "B110", "B112", "B311", "B401", "B402", "B403", "B404", "B405", "B406", "B407", "B408", "B409", "B410", "B412",
     "B413", "B603", "B606", "B607"]
)  # fmt: skip
"""Tests that report imports, assertions or every process: true of most programs, and no defect."""
_FOLLOWED = frozenset(
    ["B102", "B104", "B108", "B301", "B302", "B306", "B307", "B310", "B313", "B314", "B315", "B316", "B317", "B318",
     "B319", "B320", "B324", "B506", "B602", "B604", "B605", "B608", "B609", "B614", "B615", "B701", "B703", "B704"]
)  # fmt: skip
"""Tests whose answer depends on where the data comes from: other detectors follow it, so these are notes only."""
_SEVERITY = {
    ("HIGH", "HIGH"): Severity.HIGH,
    ("HIGH", "MEDIUM"): Severity.HIGH,
    ("MEDIUM", "HIGH"): Severity.MEDIUM,
    ("MEDIUM", "MEDIUM"): Severity.MEDIUM,
}
_QUOTES_A_PASSWORD = frozenset(["B105", "B106", "B107"])
_PASSWORD = re.compile(r"'(.+)'\s*$")
_CONFIDENCE = {"HIGH": 0.9, "MEDIUM": 0.7, "LOW": 0.4}


_SUBJECTS = re.compile(
    r"""subprocess|popen|os\.(system|exec|spawn|chmod|popen|temp|tmp)|commands\.|pty\.|pickle|marshal|shelve|dill|jsonpickle|yaml
    |\beval\b|\bexec\b|mktemp|/tmp|/var/tmp|/dev/shm|passw|pwd|secret|token|0\.0\.0\.0|debug\s*=\s*True|requests|httpx|urllib|urlopen|tarfile
    |hashlib|md5|sha1?\b|Crypto|cryptography|cipher|ssl|TLS|random|telnet|ftplib|xml|lxml|pulldom|minidom|paramiko|ssh|snmp|jinja2|mako
    |Markup|mark_safe|django|RawSQL|\.extra\(|\.execute|select\s|insert\s|update\s|delete\s|input\(|logging\.config|torch|huggingface|from_pretrained
    |[\u202a-\u202e\u2066-\u2069]""",
    re.VERBOSE | re.IGNORECASE,
)
"""What bandit's tests are about; a file without any of it has no finding but those that are left out."""


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    from agents.detectors.audit.external import copied, run_module

    files = [
        file
        for file in workspace.of("python")
        if not is_test_path(file.path) and _SUBJECTS.search(file.text)
    ]
    if not files:
        return
    context.check_cancelled()
    with copied(files) as folder:
        arguments = [
            "-r",
            ".",
            "-f",
            "json",
            "-q",
            "--ignore-nosec",
            "-s",
            ",".join(sorted(_NOISE)),
        ]
        done = run_module("bandit", arguments, folder=folder, timeout_s=BANDIT_S)
    results = _results("" if done is None else done.stdout)
    if results is None:
        context.note(f"bandit did not run with {sys.executable}: its rules were not checked.")
        return
    for one in results:
        finding = _finding(one, workspace)
        if finding is not None:
            yield finding


def _results(text: str) -> list[dict[str, Any]] | None:
    try:
        found = json.loads(text)["results"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, list) else None


def _finding(one: dict[str, Any], workspace: Workspace) -> Finding | None:
    try:
        file = workspace.get(str(one["filename"]).removeprefix("./"))
        rule, line = str(one["test_id"]), int(one["line_number"])
        lines = [int(number) for number in one.get("line_range") or [line]]
        severity = str(one["issue_severity"]), str(one["issue_confidence"])
        cwe = (one.get("issue_cwe") or {}).get("id")
        message = str(one["issue_text"])
    except (KeyError, TypeError, ValueError):
        return None
    if file is None or rule in _NOISE:
        return None
    judged = Severity.LOW if rule in _FOLLOWED else _SEVERITY.get(severity, Severity.LOW)
    evidence = None
    password = _PASSWORD.search(message) if rule in _QUOTES_A_PASSWORD else None
    if password:
        value = password[1]
        evidence = file.quote(line, max([line, *lines])).replace(value, redacted(value))
        message = message.replace(value, redacted(value))
    return Rule(rule, judged, message, int(cwe) if cwe else None).at(
        file,
        line,
        message,
        end_line=max([line, *lines]),
        confidence=_CONFIDENCE.get(severity[1], 0.5),
        evidence=evidence,
    )


BANDIT = Detector("bandit", "Runs bandit over the Python files.", _detect)
