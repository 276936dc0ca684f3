"""Errors of MCP servers."""

from agents.api.errors import AgentError


class McpError(AgentError):
    """A server cannot be started or reached, has stopped, or answers with what is no answer."""


class McpChanged(McpError):
    """A server's tool is not the one that was approved."""
