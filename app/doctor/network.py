"""The doctor's section on what agents may reach: pages and MCP servers. Nothing is asked or started."""

from agents.mcp.errors import McpError
from agents.mcp.servers import McpServers
from app.doctor.facts import Fact, Level, Section
from app.settings.settings import Settings


def network(settings: Settings) -> Section:
    """The domains of http_fetch, and the MCP servers with what is approved of them."""
    domains = list(settings.http_domains)
    fetch = Fact(
        "http_fetch", "http_fetch", domains, ", ".join(domains) or "off: no domain is listed"
    )
    return Section("network", "Network of agents", (fetch, _servers(settings)))


def _servers(settings: Settings) -> Fact:
    servers = McpServers(settings.mcp.configured(), settings.mcp_approved)
    names = [one.name for one in servers]
    try:
        waiting = [one.name for one in servers if not servers.approved.may_start(one)]
    except McpError as error:
        return Fact("mcp", "MCP servers", names, ", ".join(names), "problem", str(error))
    shown = ", ".join(f"{one} (not approved)" if one in waiting else one for one in names)
    advice = f"`pravaha mcp approve {waiting[0]}` shows it and asks." if waiting else ""
    level: Level = "note" if waiting else "ok"
    return Fact("mcp", "MCP servers", names, shown or "none configured", level, advice)
