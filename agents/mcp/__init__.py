"""MCP servers: third-party tools, in processes of their own or behind a URL. Nothing that they say is
trusted.
"""
