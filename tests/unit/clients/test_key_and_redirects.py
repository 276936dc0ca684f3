"""The key of a server is sent to that server only, wherever its answers point."""

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from app.server.mcp.api_client import remote_client
from engine.api.errors import PravahaError
from engine.clients.http_connection import HttpConnection

KEY = "sk-test-only-for-the-first"


@contextmanager
def recording_server(answer):
    """A server that answers every request with a status and headers; its URL and what it was sent."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, dict(self.headers)))
            status, headers = answer()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def waits():
    await asyncio.Event().wait()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    with (
        recording_server(lambda: (200, {})) as (other, seen_by_other),
        recording_server(lambda: (status, {"location": f"{other}/x"})) as (url, seen),
    ):
        connection = HttpConnection(url, api_key=KEY)
        connection.start(waits)
        try:
            with pytest.raises(PravahaError):
                connection.call(connection.get("/ready"))
            with pytest.raises(PravahaError):
                connection.call(connection.post("/v1/completions", {}))
        finally:
            connection.close()
    assert [one["authorization"] for _, one in map(lower, seen)] == [f"Bearer {KEY}"] * 2
    assert seen_by_other == []


@pytest.mark.parametrize("status", [302, 307])
def test_the_tools_of_a_host_do_not_follow_one(status):
    async def ask(url):
        async with remote_client(url, KEY) as client:
            return await client.get("/v1/models")

    with (
        recording_server(lambda: (200, {})) as (other, seen_by_other),
        recording_server(lambda: (status, {"location": f"{other}/x"})) as (url, seen),
    ):
        assert asyncio.run(ask(url)).status_code == status
    assert [one["authorization"] for _, one in map(lower, seen)] == [f"Bearer {KEY}"]
    assert seen_by_other == []


def lower(request):
    path, headers = request
    return path, {name.lower(): value for name, value in headers.items()}


def test_a_request_without_a_key_would_be_seen_too():
    """Else no request to the other server would mean nothing."""
    with recording_server(lambda: (200, {})) as (url, seen):
        httpx.get(url)
    assert len(seen) == 1
