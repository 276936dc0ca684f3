"""Messages of both live revisions of MCP, as HTTP requests without a client's library."""

import json
from itertools import count

import httpx

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OPENING = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
"""The parameters of `initialize`, which begins a session of 2025-11-25."""
_ids = count(1)


def message(method, params=None, **more):
    return {"jsonrpc": "2.0", "id": f"r{next(_ids)}", "method": method, **more} | (
        {} if params is None else {"params": params}
    )


def modern(method, params=None, *, meta=META, **more_meta):
    """Body and headers of a request of 2026-07-28."""
    headers = ACCEPT | {"mcp-protocol-version": MODERN, "mcp-method": method}
    if params and "name" in params:
        headers["mcp-name"] = params["name"]
    if params and "uri" in params:
        headers["mcp-name"] = params["uri"]
    return message(method, {**(params or {}), "_meta": meta | more_meta}), headers


def ask_modern(http: httpx.Client, method, params=None, **meta):
    body, headers = modern(method, params, **meta)
    return http.post("/mcp", json=body, headers=headers)


def result_of(response: httpx.Response):
    """The result in an answer, which is JSON or a stream with one response."""
    assert response.status_code == 200, response.text
    answer = answer_of(response)
    assert "error" not in answer, answer
    return answer["result"]


def answer_of(response: httpx.Response):
    if not response.headers["content-type"].startswith("text/event-stream"):
        return response.json()
    events = [
        json.loads(line.removeprefix("data: "))
        for line in response.text.splitlines()
        if line.startswith("data: ") and line != "data: "
    ]
    (answer,) = [one for one in events if "id" in one]
    return answer


class Session:
    """A session of 2025-11-25."""

    def __init__(self, http: httpx.Client, version=LEGACY):
        self.http = http
        self.opening = http.post(
            "/mcp",
            json=message("initialize", OPENING | {"protocolVersion": version}),
            headers=ACCEPT,
        )
        self.id = self.opening.headers["mcp-session-id"]
        self.headers = ACCEPT | {"mcp-session-id": self.id, "mcp-protocol-version": LEGACY}
        self.initialized = self.notify("notifications/initialized")

    def notify(self, method, params=None):
        body = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
        return self.http.post("/mcp", json=body, headers=self.headers)

    def ask(self, method, params=None):
        return self.http.post("/mcp", json=message(method, params), headers=self.headers)
