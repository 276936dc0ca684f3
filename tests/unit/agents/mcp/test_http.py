"""Servers behind a URL: a real one of the SDK in this process, and misbehaving ones."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer

from agents.mcp.connection import opened
from agents.mcp.errors import McpError
from agents.mcp.server import McpServer, check_server_url
from tests.fakes.web_server import answer, redirect


@asynccontextmanager
async def sdk_server(seen):
    """An MCP server of the SDK at `/mcp`; `seen` gets the headers of requests."""
    tools = MCPServer("real")

    @tools.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    app = tools.streamable_http_app()

    async def recording(scope, receive, send):
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]))
        await app(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(recording, port=0, log_level="error", ws="none"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await serving


async def test_tools_of_a_real_server_are_listed_and_called(monkeypatch):
    monkeypatch.setenv("MCP_TEST_TOKEN", "t0ken")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    seen = []
    async with sdk_server(seen) as url:
        server = McpServer("real", url=url, headers={"Authorization": "Bearer ${MCP_TEST_TOKEN}"})
        async with opened(server) as connection:
            (tool,) = (await connection.list_tools()).tools
            assert (tool.name, tool.description) == ("add", "Add two numbers.")
            assert (await connection.call("add", {"a": 2, "b": 3})).text == "5"
            assert (await connection.call("add", {"a": "x", "b": 3})).failed
    assert {one[b"authorization"] for one in seen} == {b"Bearer t0ken"}


class JsonServer:
    """Answers POSTs of JSON-RPC with prepared responses by method."""

    def __init__(self, **responses):
        self.responses = responses

    async def __call__(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].split("\r\n")[0] or 0)
            body = json.loads(await reader.readexactly(length)) if length else {}
            method = body.get("method", "").replace("/", "_")
            writer.write(self._answer(method, body.get("id")))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _answer(self, method, number):
        if method in self.responses:
            response = self.responses[method]
            if isinstance(response, bytes):
                return response
        elif method == "initialize":
            response = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            }
        elif method == "tools_list":
            response = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        else:
            return answer(status=202)
        message = {"jsonrpc": "2.0", "id": number, "result": response}
        return answer(json.dumps(message), "application/json", headers={"connection": "close"})


@asynccontextmanager
async def json_server(**responses):
    listening = await asyncio.start_server(JsonServer(**responses), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    finally:
        listening.close()


HUGE = answer(b'"' + b"x" * (9 << 20) + b'"', "application/json")


@pytest.mark.parametrize(
    "response",
    [
        HUGE,
        answer("x", "text/html"),
        answer("nonsense", "application/json"),
        answer("{}", "application/json", headers={"content-encoding": "gzip"}),
        answer("no", status=500),
        redirect("http://127.0.0.2:1/mcp", 307),
        b"",
    ],
)
async def test_an_answer_that_is_none_fails_the_call(response):
    async with (
        json_server(tools_call=response) as url,
        opened(McpServer("bad", url=url, call_s=5.0)) as connection,
    ):
        assert [one.name for one in (await connection.list_tools()).tools] == ["t"]
        with pytest.raises(McpError, match="The MCP server bad "):
            await connection.call("t", {})


async def test_a_server_that_is_not_there_is_said():
    async with json_server() as url:
        pass
    async with opened(McpServer("gone", url=url)) as connection:
        with pytest.raises(McpError, match=r"The MCP server gone "):
            await connection.list_tools()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.org", "a URL such as"),
        ("https://", "a URL such as"),
        ("https://a:b@example.org/", "no user name"),
        ("http://example.org/mcp", "https, except on this machine"),
        ("http://127.0.0.1.example.org/", "https, except on this machine"),
    ],
)
def test_a_url_of_a_server_is_checked(url, message):
    with pytest.raises(ValueError, match=message):
        check_server_url(url)


@pytest.mark.parametrize(
    "url", ["https://example.org/mcp", "http://localhost:1/", "http://[::1]:2/mcp"]
)
def test_a_url_is_allowed(url):
    check_server_url(url)
