"""The MCP server: the HTTP API's functions as tools, resources and prompts of the Model Context Protocol.

Every tool is a call of the API, in this process or over a socket. What is checked there (keys, fields,
guardrails, limits, the drain) is checked for tools by the same code, and a cancelled tool is a client that
has disconnected.
"""
