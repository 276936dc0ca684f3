"""The detector `servers`: settings of nginx, Apache, sshd, Redis, PostgreSQL, MongoDB and MySQL."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
NO_AUTH = Rule("authentication-off", _HIGH, "Authentication switched off", cwe=306)
ROOT_LOGIN = Rule("root-login", _MEDIUM, "Root may log in", cwe=250)
EMPTY_PASSWORD = Rule("empty-password", _HIGH, "Empty passwords accepted", cwe=258)
WIDE_BIND = Rule("wide-bind", _MEDIUM, "Listens on every interface", cwe=668)
ALIAS = Rule("alias-traversal", _HIGH, "Folder above the alias is served", cwe=22)
OPEN_PROXY = Rule("open-proxy", _HIGH, "Clients choose where requests go", cwe=918)
HEADER_SPLIT = Rule("header-injection", _MEDIUM, "Decoded address in a header", cwe=113)
VERSION_SHOWN = Rule("version-shown", _LOW, "Version shown to everybody", cwe=200)
WEAK_CIPHERS = Rule("weak-cipher", _MEDIUM, "Broken ciphers allowed", cwe=327)
RULES = (
    NO_AUTH, ROOT_LOGIN, EMPTY_PASSWORD, WIDE_BIND, ALIAS, OPEN_PROXY, HEADER_SPLIT, VERSION_SHOWN, WEAK_CIPHERS,
)  # fmt: skip

_Line = tuple[re.Pattern[str], Rule, str]


def _line(pattern: str, rule: Rule, message: str) -> _Line:
    return re.compile(pattern, re.I), rule, message


_SSHD = (
    _line(r"^\s*PermitRootLogin\s+yes\b", ROOT_LOGIN, "Root may log in from outside: use an account and sudo."),
    _line(r"^\s*PermitEmptyPasswords\s+yes\b", EMPTY_PASSWORD, "Accounts without a password are open to everybody."),
    _line(r"^\s*(Ciphers|MACs|KexAlgorithms)\b.*\b(3des-cbc|arcfour\w*|blowfish-cbc|hmac-md5\S*|diffie-hellman-group1-sha1)", WEAK_CIPHERS, "A broken algorithm is allowed."),
)  # fmt: skip
_REDIS = (
    _line(
        r"^\s*protected-mode\s+no\b", NO_AUTH, "Everybody who reaches the port may read and write."
    ),
    _line(
        r"^\s*bind\s+(.*\s)?(0\.0\.0\.0|\*|::)(\s|$)",
        WIDE_BIND,
        "The server listens on every interface.",
    ),
)
_POSTGRES = (
    _line(r"^\s*host(ssl|nossl)?\s+\S+\s+\S+\s+\S+\s+trust\b", NO_AUTH, "Everybody at these addresses may log in without a password."),
    _line(r"^\s*listen_addresses\s*=\s*'\*'", WIDE_BIND, "The server listens on every interface."),
)  # fmt: skip
_MYSQL = (
    _line(r"^\s*skip[-_]grant[-_]tables\b", NO_AUTH, "Everybody has all rights."),
    _line(
        r"^\s*bind[-_]address\s*=\s*(0\.0\.0\.0|\*)",
        WIDE_BIND,
        "The server listens on every interface.",
    ),
)
_NGINX = (
    _line(r"\bproxy_pass\s+https?://\$(http_host|host|arg_\w+|request_uri|uri|http_\w+|query_string|args)\b", OPEN_PROXY, "The client's request decides which server is asked."),
    _line(r"\b(return\s+30\d|add_header|rewrite)\b.*\$(uri|document_uri)\b", HEADER_SPLIT, "$uri is decoded, so a client may write headers: use $request_uri."),
    _line(r"^\s*server_tokens\s+on\b", VERSION_SHOWN, "The version helps an attacker."),
    _line(r"\bssl_ciphers\b[^;]*(?<![!:\w-])(RC4|DES|3DES|MD5|NULL|EXPORT|aNULL|eNULL|LOW)\b", WEAK_CIPHERS, "Broken ciphers are allowed."),
)  # fmt: skip
_APACHE = (
    _line(
        r"^\s*ServerTokens\s+Full\b|^\s*ServerSignature\s+On\b",
        VERSION_SHOWN,
        "The version helps an attacker.",
    ),
    _line(
        r"^\s*ProxyRequests\s+On\b", OPEN_PROXY, "Everybody may send requests through this server."
    ),
)


def _kind(file: SourceFile) -> tuple[_Line, ...]:
    name, path, text = PurePosixPath(file.path).name.lower(), file.path.lower(), file.text
    if name.startswith("sshd_config") or "sshd_config.d/" in path:
        return _SSHD
    if name.startswith("redis") and name.endswith(".conf"):
        return _REDIS
    if name in ("pg_hba.conf", "postgresql.conf"):
        return _POSTGRES
    if name in ("my.cnf", "my.ini", "mysqld.cnf", "mariadb.cnf"):
        return _MYSQL
    if "nginx" in path or (
        name.endswith(".conf") and re.search(r"(?m)^\s*(server|location)\b.*\{", text)
    ):
        return _NGINX
    if name in ("httpd.conf", "apache2.conf", ".htaccess") or (
        "apache" in path and name.endswith(".conf")
    ):
        return _APACHE
    return ()


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        context.check_cancelled()
        if file.language in (None, "text", "ini"):
            rules = _kind(file)
            yield from _lines(file, rules)
            if rules is _NGINX:
                yield from _aliases(file)


def _lines(file: SourceFile, rules: tuple[_Line, ...]) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1) if rules else ():
        if len(line) > 2_000 or line.lstrip().startswith(("#", ";")):
            continue
        for pattern, rule, message in rules:
            if pattern.search(line):
                yield rule.at(file, number, message)


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
            yield ALIAS.at(
                file, number, f"{location}../ leaves the folder: end the location with a slash."
            )


SERVERS = Detector(
    "servers",
    "Reads settings of web servers, databases and sshd for open doors.",
    _detect,
    RULES,
)
