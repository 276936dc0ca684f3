"""`further_servers`: the MCP servers that a client names for a session, as the agents use them."""

import re
from collections.abc import Iterable
from typing import Any

from acp.schema import HttpMcpServer, McpServerStdio

from agents.mcp.errors import McpError
from agents.mcp.server import McpServer, check_server_url

_MAX_NAME = 32
_VARIABLE = re.compile(r"\$\{")


def further_servers(given: Iterable[Any]) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """The servers, and a sentence about each that cannot be used.

    Names become names of ours, such as `my-files` for `My files`. They are approved like all others: the
    start, and the tools, are asked about.
    """
    servers: dict[str, McpServer] = {}
    problems: list[str] = []
    for one in given:
        shown = f"The MCP server {one.name!r:.60} was left out:"
        name = _name_of(one.name)
        if not name or name in servers:
            problems.append(f"{shown} its name has no letters, or two have the same.")
        elif isinstance(one, McpServerStdio):
            values = {variable.name: variable.value for variable in one.env}
            if any(_VARIABLE.search(value) for value in values.values()):
                problems.append(f"{shown} a variable has ${{…}}, which stands for one of yours.")
            else:
                servers[name] = McpServer(name, one.command, tuple(one.args), values)
        elif isinstance(one, HttpMcpServer):
            headers = {header.name: header.value for header in one.headers}
            try:
                check_server_url(one.url)
            except (McpError, ValueError) as error:
                problems.append(f"{shown} {error}")
            else:
                servers[name] = McpServer(name, url=one.url, headers=headers)
        else:
            problems.append(f"{shown} only stdio and streamable HTTP are spoken.")
    return tuple(servers.values()), tuple(problems)


def _name_of(given: str) -> str:
    words = re.sub(r"[^a-z0-9_-]+", "-", given.lower()).strip("-_0123456789")
    return words[:_MAX_NAME]
