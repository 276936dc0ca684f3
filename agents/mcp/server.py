"""`McpServer`: one configured server, and what of its configuration an approval covers."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from agents.mcp.errors import McpError

CONNECT_S = 20.0
CALL_S = 60.0
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(r"token|secret|passw|key|auth|credential|cookie", re.IGNORECASE)
_INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""What a started program gets of the environment: no keys, no `PYTHONPATH`, no `LD_*`."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server: a program that talks over its standard input and output, or a URL (streamable HTTP).

    Attributes:
        name: by which agents name it.
        command: the program, or empty for a URL.
        args: its arguments.
        env: further environment variables; `${NAME}` in a value stands for a variable of the environment.
        cwd: its working folder; None is the user's home. The project would be a place from which others'
            files get loaded.
        url: of the endpoint, or empty for a program.
        headers: sent with each request; `${NAME}` as in `env`.
        connect_s: seconds until it must have answered with its tools.
        call_s: seconds that one call may take.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_s: float = CONNECT_S
    call_s: float = CALL_S

    @property
    def launch_digest(self) -> str:
        """A digest of what decides which program runs, or who is asked. Values are taken before expansion."""
        members = {
            "command": self.command,
            "args": self.args,
            "env": dict(self.env),
            "cwd": None if self.cwd is None else str(self.cwd),
            "url": self.url,
            "headers": dict(self.headers),
        }
        return hashlib.sha256(orjson.dumps(members, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def shown(self) -> dict[str, Any]:
        """What an approver reads: the program or URL, and variables and headers without secrets."""
        if self.url:
            return {"url": self.url, "headers": _without_secrets(self.headers)}
        return {
            "command": [self.command, *self.args],
            "env": _without_secrets(self.env),
            "cwd": str(self.cwd or "the home folder"),
        }

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of the program.

        Raises:
            McpError: a variable that a value names is not set.
        """
        given = os.environ if environ is None else environ
        kept = {name: given[name] for name in _INHERITED if name in given}
        return kept | self._expanded("env", self.env, given)

    def sent_headers(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """The headers of each request.

        Raises:
            McpError: a variable that a value names is not set.
        """
        return self._expanded("headers", self.headers, os.environ if environ is None else environ)

    def _expanded(
        self, what: str, values: Mapping[str, str], environ: Mapping[str, str]
    ) -> dict[str, str]:
        def value_of(match: re.Match[str]) -> str:
            if match[1] not in environ:
                raise McpError(
                    f"The MCP server {self.name} needs the environment variable {match[1]} for its {what}."
                )
            return environ[match[1]]

        return {name: _VARIABLE.sub(value_of, value) for name, value in values.items()}


def check_server_url(url: str) -> None:
    """Check an endpoint: https, or http on this machine; no credentials in it.

    Raises:
        ValueError: it is not allowed.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("should be a URL such as https://example.org/mcp")
    if parts.username is not None or parts.password is not None:
        raise ValueError("should have no user name or password: put them in headers")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError("should use https, except on this machine")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _without_secrets(values: Mapping[str, str]) -> dict[str, str]:
    """Values as they are configured; one whose name suggests a secret only if it names a variable."""
    return {
        name: value if not _SECRET.search(name) or _VARIABLE.search(value) else "(not shown)"
        for name, value in values.items()
    }
