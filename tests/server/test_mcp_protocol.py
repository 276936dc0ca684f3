"""`/mcp`: both live revisions of the protocol, byte by byte."""

from pathlib import Path

import httpx
import pytest

from app.server.mcp.prompts import PROMPTS
from app.server.mcp.resources import FIXED, TEMPLATES
from app.server.mcp.tools.catalogue import TOOLS
from tests.server.live import live
from tests.server.mcp_requests import (
    ACCEPT,
    LEGACY,
    META,
    MODERN,
    Session,
    answer_of,
    ask_modern,
    message,
    modern,
    result_of,
)

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def test_a_new_client_discovers_the_server(client):
    response = ask_modern(client, "server/discover")
    assert response.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in response.headers
    found = result_of(response)
    assert (found["resultType"], found["supportedVersions"]) == ("complete", [MODERN])
    assert set(found["capabilities"]) >= {"tools", "resources", "prompts", "completions"}
    assert "chat" in found["instructions"]


@pytest.mark.parametrize("method", LISTS)
def test_a_list_says_how_long_it_lasts(client, method):
    found = result_of(ask_modern(client, method))
    assert found["resultType"] == "complete"
    assert found["cacheScope"] in ("public", "private")
    assert found["ttlMs"] >= 0
    assert found[LISTS[method]]


def test_an_answer_is_plain_json_and_of_no_session(engine):
    given = {"name": "chat", "arguments": {"message": "hi", "max_tokens": 3, "temperature": 0}}
    # Of an answer that takes longer than `keep_alive_s` the head is sent before it.
    with live(engine, keep_alive_s=60) as server, httpx.Client(base_url=server.url) as client:
        response = ask_modern(client, "tools/call", given)
    found = result_of(response)
    assert response.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in response.headers
    assert (found["resultType"], found.get("isError", False)) == ("complete", False)
    assert [block["type"] for block in found["content"]] == ["text"]
    assert found["structuredContent"]["completion_tokens"] == 3


def test_ids_come_back_as_they_were_sent(client):
    for identity in ("a string", 7):
        body, headers = modern("tools/list")
        response = client.post("/mcp", json=body | {"id": identity}, headers=headers)
        assert response.json()["id"] == identity


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({}, -32602),
        ({k: v for k, v in META.items() if "Capabilities" not in k}, -32602),
        (META | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}, -32020),
    ],
)
def test_an_incomplete_envelope_is_refused(client, meta, code):
    response = ask_modern(client, "tools/list", meta=meta)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == code


def test_a_revision_that_is_not_spoken_names_those_that_are(client):
    body, headers = modern("tools/list", meta=META | {next(iter(META)): "2099-01-01"})
    headers["mcp-protocol-version"] = "2099-01-01"
    response = client.post("/mcp", json=body, headers=headers)
    assert response.status_code == 400
    assert MODERN in response.json()["error"]["data"]["supported"]


def test_a_method_that_is_not_there_is_404(client):
    for method in ("nothing/here", "subscriptions/listen"):
        response = ask_modern(client, method, {"notifications": {}})
        assert (response.status_code, response.json()["error"]["code"]) == (404, -32601)


def test_notifications_are_accepted(client):
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}
    headers = ACCEPT | {"mcp-protocol-version": MODERN}
    response = client.post("/mcp", json=body, headers=headers)
    assert (response.status_code, response.content) == (202, b"")
    assert Session(client).initialized.status_code == 202


@pytest.mark.parametrize(
    ("asked", "got"), [(LEGACY, LEGACY), ("2025-06-18", "2025-06-18"), (MODERN, LEGACY)]
)
def test_an_older_client_shakes_hands(client, asked, got):
    session = Session(client, asked)
    found = result_of(session.opening)
    assert found["protocolVersion"] == got
    assert found["serverInfo"]["name"] == "pravaha"
    assert session.id
    assert result_of(session.ask("ping")) == {}
    for method, member in LISTS.items():
        listed = result_of(session.ask(method))
        assert listed[member]
        assert "resultType" not in listed
    called = result_of(
        session.ask("tools/call", {"name": "chat", "arguments": {"message": "a", "max_tokens": 2}})
    )
    assert called["structuredContent"]["completion_tokens"] == 2


def test_there_is_no_stream_without_a_request(client):
    session = Session(client)
    for headers in (session.headers, ACCEPT, ACCEPT | {"mcp-protocol-version": MODERN}):
        response = client.get("/mcp", headers=headers)
        assert (response.status_code, response.headers["allow"]) == (405, "POST, DELETE")


def test_a_session_ends_once(client):
    session = Session(client)
    assert client.delete("/mcp", headers=session.headers).status_code == 200
    assert session.ask("ping").status_code == 404
    assert client.delete("/mcp", headers=session.headers).status_code == 404


def test_requests_of_no_session_and_of_an_unknown_one(client):
    assert client.post("/mcp", json=message("ping"), headers=ACCEPT).status_code == 400
    unknown = ACCEPT | {"mcp-session-id": "f" * 32}
    assert client.post("/mcp", json=message("ping"), headers=unknown).status_code == 404


def test_sessions_are_apart(client):
    one, other = Session(client), Session(client)
    assert one.id != other.id
    client.delete("/mcp", headers=one.headers)
    assert result_of(other.ask("ping")) == {}


def numbers(schema):
    """All numbers in a schema."""
    if isinstance(schema, dict):
        return [number for value in schema.values() for number in numbers(value)]
    if isinstance(schema, list):
        return [number for value in schema for number in numbers(value)]
    return [schema] if isinstance(schema, int | float) else []


def test_every_tool_says_what_it_takes_and_returns(client):
    tools = result_of(ask_modern(client, "tools/list"))["tools"]
    assert [one["name"] for one in tools] == list(TOOLS)
    for tool in tools:
        assert tool["title"]
        assert len(tool["description"]) > 40
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            assert "$ref" not in str(schema)
            assert "title" not in schema
            assert "null" not in str(schema)
            assert max(numbers(schema), default=0) < 2**53  # vibe refuses every tool otherwise
        assert tool["inputSchema"]["additionalProperties"] is False
    assert [one["name"] for one in tools if not one["annotations"]["readOnlyHint"]] == ["run_agent"]


def test_what_hosts_read_is_there_in_both_revisions(client):
    session = Session(client)
    given = {"uri": "pravaha://metrics"}
    for response in (
        ask_modern(client, "resources/read", given),
        session.ask("resources/read", given),
    ):
        (contents,) = result_of(response)["contents"]
        assert (contents["uri"], contents["mimeType"]) == ("pravaha://metrics", "text/plain")
        assert "pravaha_http_responses_total" in contents["text"]


def test_a_resource_that_is_not_there(client):
    for uri in ("pravaha://nothing", "pravaha://collections/x", "file:///etc/passwd"):
        error = answer_of(ask_modern(client, "resources/read", {"uri": uri}))["error"]
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})


def test_the_documentation_has_every_tool_prompt_and_resource():
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
    uris = [one.uri for one in FIXED] + [one.uri_template for one in TEMPLATES]
    for name in (*TOOLS, *PROMPTS, *uris):
        assert f"`{name}`" in page
