"""Fixers of files that are not Python: Dockerfile, compose and package settings."""

import re

from agents.api.finding import Finding
from agents.procedures.audit.fixers.edits import Fix
from agents.workspace.source_file import SourceFile


def fix_configuration(file: SourceFile, finding: Finding) -> Fix | None:
    """A fix of one line of a configuration file, or None."""
    if file.language == "dockerfile" and finding.cwe in (250, 269):
        return _docker_user(file)
    if finding.cwe == 502 or not 1 <= finding.line <= len(file.lines):
        return None
    line = file.lines[finding.line - 1]
    for pattern, new, reason in _LINES:
        if pattern.search(line) and finding.cwe in _CWES:
            lines = list(file.lines)
            lines[finding.line - 1] = pattern.sub(new, line)
            return Fix("\n".join(lines), reason)
    return None


_CWES = frozenset([250, 269, 489, 605, 668, 732, 16, 1188, 215])
_LINES = (
    (re.compile(r"^(\s*-?\s*privileged:\s*)true\b"), r"\1false", "The container gets no privileges."),
    (re.compile(r"^(\s*-?\s*allowPrivilegeEscalation:\s*)true\b"), r"\1false", "No process gains privileges."),
    (re.compile(r"^(\s*debug\s*[:=]\s*)true\b", re.IGNORECASE), r"\1false", "Debugging is off."),
    (re.compile(r"\b0\.0\.0\.0\b"), "127.0.0.1", "Only this machine can connect."),
    (re.compile(r"\bchmod\s+(-R\s+)?0?777\b"), r"chmod \g<1>750", "Others have no access."),
)


def _docker_user(file: SourceFile) -> Fix | None:
    """`USER 65534` (nobody) before the command that runs."""
    for index in range(len(file.lines) - 1, -1, -1):
        if re.match(r"\s*(CMD|ENTRYPOINT)\b", file.lines[index], re.IGNORECASE):
            lines = list(file.lines)
            previous = next((t for t in reversed(lines[:index]) if t.strip()), "")
            if re.match(r"\s*ENTRYPOINT\b", previous, re.IGNORECASE):
                index = max(i for i in range(index) if lines[i] == previous)
            lines.insert(index, "USER 65534")
            return Fix("\n".join(lines), "The process runs as nobody instead of root.")
    return None
