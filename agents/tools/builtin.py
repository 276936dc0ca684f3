"""The built-in tools."""

from agents.tools.tool import Tool

TOOLS: tuple[Tool, ...] = ()
