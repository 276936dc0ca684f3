"""The detector `servers`: settings of nginx, Apache, sshd, Redis, PostgreSQL, MongoDB and MySQL."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from agents.api.finding import Finding
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleFile
from agents.detectors.security.pattern_rules import PatternRule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "servers", entry=PatternRule)


def _kind(file: SourceFile) -> str:
    """The program that reads a file, as the rules name it; empty for another."""
    name, path, text = PurePosixPath(file.path).name.lower(), file.path.lower(), file.text
    if name.startswith("sshd_config") or "sshd_config.d/" in path:
        return "sshd"
    if name.startswith("redis") and name.endswith(".conf"):
        return "redis"
    if name in ("pg_hba.conf", "postgresql.conf"):
        return "postgres"
    if name in ("my.cnf", "my.ini", "mysqld.cnf", "mariadb.cnf"):
        return "mysql"
    if "nginx" in path or (
        name.endswith(".conf") and re.search(r"(?m)^\s*(server|location)\b.*\{", text)
    ):
        return "nginx"
    if name in ("httpd.conf", "apache2.conf", ".htaccess") or (
        "apache" in path and name.endswith(".conf")
    ):
        return "apache"
    return ""


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        context.check_cancelled()
        if file.language in (None, "text", "ini"):
            kind = _kind(file)
            yield from _lines(file, kind)
            if kind == "nginx":
                yield from _aliases(file)


def _lines(file: SourceFile, kind: str) -> Iterator[Finding]:
    patterns = [
        (entry.rule, one)
        for entry in RULES.entries.values()
        for one in entry.lines
        if kind in one.languages
    ]
    for number, line in enumerate(file.lines, 1) if patterns else ():
        if len(line) > 2_000 or line.lstrip().startswith(("#", ";")):
            continue
        for rule, one in patterns:
            if one.pattern.search(line):
                yield rule.at(file, number, one.message)


def _aliases(file: SourceFile) -> Iterator[Finding]:
    """`location /files { alias /srv/files/; }`: `/files../x` leaves the folder."""
    location = ""
    for number, line in enumerate(file.lines, 1):
        if match := re.search(r"\blocation\s+(?:\^~\s+)?(/\S*)\s*\{", line):
            location = match[1]
        elif re.search(r"\blocation\b", line):
            location = ""
        alias = re.search(r"^\s*alias\s+(\S+);|\{\s*alias\s+(\S+);", line)
        if (
            alias
            and location
            and not location.endswith("/")
            and (alias[1] or alias[2]).endswith("/")
        ):
            yield RULES["alias-traversal"].at(
                file, number, f"{location}../ leaves the folder: end the location with a slash."
            )


SERVERS = Detector(
    "servers", "Reads settings of web servers, databases and sshd for open doors.", _detect, RULES
)
