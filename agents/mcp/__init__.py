"""MCP servers: third-party tools, in other processes or behind a URL. Nothing that they say is trusted."""
