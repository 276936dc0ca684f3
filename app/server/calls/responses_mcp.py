"""Tools of the type `mcp` of a response: the MCP servers that its model may use, and which of their tools.

A request only names servers that an administrator has configured (`[mcp.servers.NAME]`): by `server_label`,
or by the `server_url` of one. The server connects with the headers of its own settings; credentials in the
request are not sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.server.wire.errors import bad_request

_CREDENTIALS = ("authorization", "headers")
_OTHER_SERVERS = ("connector_id", "tunnel_id")


@dataclass(frozen=True, slots=True)
class WantedMcp:
    """One tool of the type `mcp`.

    Attributes:
        path: of the tool in the request.
        label: the client's name of the server.
        url: of the server, if the client named it.
        allowed: names of the tools that the model is offered; None for all.
        asks: whether the client wants to approve a call of a tool.
    """

    path: str
    label: str
    url: str | None
    allowed: frozenset[str] | None
    asks: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class McpAccess:
    """The servers of one response.

    Attributes:
        servers: what is wanted of each, by the configured name.
    """

    servers: Mapping[str, WantedMcp]

    @property
    def names(self) -> dict[str, str]:
        """The configured names by label."""
        return {wanted.label: name for name, wanted in self.servers.items()}

    def place(self, tool: str) -> tuple[str, str] | None:
        """The configured name and the server's own name of a tool `SERVER.TOOL`; None for others."""
        for server in self.servers:
            if tool.startswith(f"{server}."):
                return server, tool[len(server) + 1 :]
        return None

    def is_allowed(self, tool: str) -> bool:
        """Whether the model is offered this tool."""
        found = self.place(tool)
        if found is None:
            return False
        allowed = self.servers[found[0]].allowed
        return allowed is None or found[1] in allowed

    def asks(self, tool: str) -> bool:
        """Whether the client wants to approve calls of this tool."""
        found = self.place(tool)
        return found is not None and self.servers[found[0]].asks(found[1])


def wanted_mcp(tool: Mapping[str, Any], path: str) -> WantedMcp:
    """Read a tool.

    Raises:
        ApiError: 400 that names a member.
    """
    label, url = tool.get("server_label"), tool.get("server_url")
    if not isinstance(label, str) or not label:
        raise bad_request(f"`{path}.server_label` is missing.", param=f"{path}.server_label")
    if url is not None and not isinstance(url, str):
        raise bad_request(
            f"`{path}.server_url` is not valid: it must be a string.", param=f"{path}.server_url"
        )
    for name in _OTHER_SERVERS:
        if tool.get(name) is not None:
            raise bad_request(
                f"`{path}.{name}` names a service of OpenAI's: this server uses the MCP servers of its own "
                "settings.",
                param=f"{path}.{name}",
            )
    where = f"{path}.allowed_tools"
    return WantedMcp(
        path,
        label,
        url,
        _tool_names(tool.get("allowed_tools"), where),
        _asking(tool.get("require_approval"), f"{path}.require_approval"),
    )


def unsent(tool: Mapping[str, Any], path: str) -> list[str]:
    """Paths of the credentials in a tool, which have no effect."""
    return [f"{path}.{name}" for name in _CREDENTIALS if tool.get(name)]


def without_credentials(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The tool as the response shows it and as it is kept."""
    return {name: value for name, value in tool.items() if name not in _CREDENTIALS}


def mcp_access(wanted: Sequence[WantedMcp], configured: Mapping[str, str]) -> McpAccess:
    """The configured servers that are wanted.

    Args:
        wanted: the tools of the request.
        configured: URLs of the configured servers by name; empty for a program.

    Raises:
        ApiError: 400 for a server that is not configured, or is named twice.
    """
    by_url = {url.rstrip("/"): name for name, url in configured.items() if url}
    servers: dict[str, WantedMcp] = {}
    for one in wanted:
        url = None if one.url is None else one.url.rstrip("/")
        name = one.label if url is None else by_url.get(url)
        if name is None or name not in configured:
            shown = one.label if one.url is None else one.url
            raise bad_request(
                f"There is no MCP server {shown[:120]!r} here: an administrator of this server allows one by "
                "[mcp.servers.NAME] in pravaha.toml and `pravaha mcp approve NAME`.",
                param=f"{one.path}.{'server_label' if one.url is None else 'server_url'}",
                code="mcp_server_not_configured",
            )
        if name in servers or any(other.label == one.label for other in servers.values()):
            raise bad_request(
                f"The MCP server {one.label[:120]!r} is in `tools` twice.", param=one.path
            )
        servers[name] = one
    return McpAccess(servers)


def _tool_names(given: Any, path: str) -> frozenset[str] | None:
    """The names in a list of tools, or in a filter; None where all are meant."""
    if given is None:
        return None
    if isinstance(given, dict):
        if given.get("read_only") is not None:
            raise bad_request(
                f"`{path}.read_only` is not supported, because only the server itself says what only reads: "
                "give `tool_names`.",
                param=f"{path}.read_only",
            )
        return _tool_names(given.get("tool_names"), f"{path}.tool_names")
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise bad_request(f"`{path}` is not valid: it must be a list of names.", param=path)
    return frozenset(given)


def _asking(given: Any, path: str) -> Callable[[str], bool]:
    """Whether calls of a tool are to be approved: all by default, as with OpenAI's servers."""
    if given is None or given == "always":
        return lambda name: True
    if given == "never":
        return lambda name: False
    if not isinstance(given, dict) or not given.keys() <= {"always", "never"}:
        raise bad_request(
            f"`{path}` is not valid: it must be 'always', 'never', or an object with these members.",
            param=path,
        )
    always = _named(given, "always", path)
    never = _named(given, "never", path)
    if "never" in given:
        return lambda name: name in always or name not in never
    return lambda name: name in always


def _named(given: Mapping[str, Any], member: str, path: str) -> frozenset[str]:
    value = given.get(member)
    if value is not None and not isinstance(value, dict):
        raise bad_request(
            f"`{path}.{member}` is not valid: it must be an object.", param=f"{path}.{member}"
        )
    return _tool_names(value, f"{path}.{member}") or frozenset()
