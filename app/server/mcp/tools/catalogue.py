"""`TOOLS`: all tools, by name."""

from app.server.mcp.tool import Tool
from app.server.mcp.tools.agents import LIST_AGENTS, RUN_AGENT
from app.server.mcp.tools.chat import CHAT
from app.server.mcp.tools.complete import COMPLETE
from app.server.mcp.tools.decide import DECIDE
from app.server.mcp.tools.embed import EMBED
from app.server.mcp.tools.fork import FORK
from app.server.mcp.tools.search import LIST_COLLECTIONS, SEARCH

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        CHAT,
        COMPLETE,
        DECIDE,
        EMBED,
        SEARCH,
        LIST_COLLECTIONS,
        RUN_AGENT,
        LIST_AGENTS,
        FORK,
    )
}
