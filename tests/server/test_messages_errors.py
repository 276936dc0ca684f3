"""Errors in the format of Anthropic's API, wherever they arise."""

import json

import httpx
import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.snapshot import EngineState
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.messages_client import ASK
from tests.server.scripted_engine import ScriptedEngine, words

KEY = "sk-test-5b1f"
VERSION = {"anthropic-version": "2026-10-21"}


def error_of(response, *, details=False):
    """The error of a response in this format."""
    body = response.json()
    assert list(body) == ["type", "error", "request_id"]
    assert body["type"] == "error"
    assert set(body["error"]) == {"type", "message"} | ({"details"} if details else set())
    assert body["request_id"] == response.headers["request-id"] == response.headers["x-request-id"]
    return body["error"]


@pytest.fixture(scope="module")
def client():
    with (
        live(
            ScriptedEngine(words("ok")),
            max_body_bytes=10_000,
            max_image_bytes=0,
            body_timeout_s=0.5,
            api_key=KEY,
        ) as server,
        httpx.Client(base_url=server.url, headers={"x-api-key": KEY}) as http,
    ):
        yield http


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1/messages", 405, "invalid_request_error"),
        ("POST", "/v1/messages/batches", 404, "not_found_error"),
        ("GET", "/v1/messages/batches/b1", 404, "not_found_error"),
        ("POST", "/v1/messages/nothing?beta=true", 404, "not_found_error"),
    ],
)
def test_paths_that_are_not_there(client, method, path, status, kind):
    response = client.request(method, path)
    assert response.status_code == status
    assert error_of(response)["type"] == kind


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [7]}]}, "messages[0].content[0]"),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]}
                ]
            },
            "messages[0].content[0].tool_use.input",
        ),
        ({"tools": [{"description": "x"}]}, "tools[0].custom.name"),
        ({"tool_choice": {"type": "sometimes"}}, "tool_choice.type"),
        ({"temperature": -1}, "temperature"),
        ({"stop_sequences": ["x"] * 3 + [str(one) for one in range(64)]}, "stop_sequences"),
        ({"model": ""}, "model"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        (
            {
                "output_config": {"format": {"type": "json_schema", "schema": {}}},
                "output_format": {"type": "json_schema", "schema": {}},
            },
            "output_format",
        ),
    ],
)
def test_a_field_that_is_not_valid_is_named(client, fields, named):
    response = client.post("/v1/messages", json=ASK | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert error["type"] == "invalid_request_error"
    assert f"`{named}" in error["message"]


def test_a_field_that_a_chat_refuses_has_its_name_here():
    schema = {"type": "object", "properties": {"a": {"type": "sideways"}}}
    fields = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    with byte_engine() as engine, live(engine) as server:
        response = httpx.post(f"{server.url}/v1/messages", json=ASK | fields)
    assert response.status_code == 400
    assert error_of(response)["message"].startswith("output_config.format: ")


@pytest.mark.parametrize("nested", [False, True])
def test_an_image_that_is_refused_has_its_path_here(client, nested):
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
    }
    content = [{"type": "text", "text": "a"}, image]
    if nested:
        content = [{"type": "tool_result", "tool_use_id": "t", "content": content}]
    messages = [
        *ASK["messages"],
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": content},
    ]
    response = client.post("/v1/messages", json=ASK | {"messages": messages})
    assert response.status_code == 400
    path = "messages[2].content[0].content[1]" if nested else "messages[2].content[1]"
    assert error_of(response)["message"].startswith(f"{path}: ")


def test_a_body_that_is_no_json_or_too_large(client):
    assert error_of(client.post("/v1/messages", content=b"{"))["type"] == "invalid_request_error"
    large = ASK | {"messages": [{"role": "user", "content": "x" * 20_000}]}
    response = client.post("/v1/messages", json=large)
    assert response.status_code == 413
    assert error_of(response)["type"] == "request_too_large"
    compressed = client.post("/v1/messages", content=b"{}", headers={"content-encoding": "gzip"})
    assert compressed.status_code == 415
    assert error_of(compressed)["type"] == "invalid_request_error"


@pytest.mark.parametrize("headers", [{"x-api-key": "wrong"}, {"x-api-key": ""}])
def test_without_the_key(client, headers):
    response = client.post("/v1/messages", json=ASK, headers=headers)
    assert response.status_code == 401
    assert error_of(response)["type"] == "authentication_error"


def test_another_host():
    with live(ScriptedEngine(words("ok"))) as server:
        response = httpx.post(
            f"{server.url}/v1/messages", json=ASK, headers={"host": "evil.example"}
        )
    assert response.status_code == 403
    assert error_of(response)["type"] == "permission_error"


@pytest.mark.parametrize(
    ("refusal", "status", "kind"),
    [
        (QueueFull("full"), 429, "rate_limit_error"),
        (EngineUnavailable("gone"), 529, "overloaded_error"),
        (InvalidRequest("no", param="stop"), 400, "invalid_request_error"),
        (RuntimeError("secret detail"), 500, "api_error"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals_of_the_engine(refusal, status, kind, stream):
    with live(ScriptedEngine(lambda request: refusal)) as server:
        response = httpx.post(f"{server.url}/v1/messages", json=ASK | {"stream": stream})
        metrics = httpx.get(f"{server.url}/metrics").text
    assert response.status_code == status
    assert error_of(response)["type"] == kind
    assert "secret" not in response.text
    assert f'route="/v1/messages",status="{status}"}} 1.0' in metrics
    if status in (429, 529):
        assert int(response.headers["retry-after"]) > 0
        assert response.headers["x-should-retry"] == "true"


def test_a_model_that_is_still_loading_is_an_overload():
    engine = ScriptedEngine(words("ok"))
    engine.info, engine.state = None, EngineState.LOADING
    with live(engine) as server:
        response = httpx.post(f"{server.url}/v1/messages", json=ASK)
    assert response.status_code == 529
    assert "loading" in error_of(response)["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_told_in_the_words_of_both_apis(stream):
    body = ASK | {"messages": [{"role": "user", "content": "x" * 600}], "stream": stream}
    with byte_engine(context=512) as engine, live(engine) as server:
        counted = httpx.post(f"{server.url}/v1/messages/count_tokens", json=body)
        response = httpx.post(f"{server.url}/v1/messages", json=body)
    assert response.status_code == 400
    error = error_of(response)
    assert error["type"] == "invalid_request_error"
    tokens = counted.json()["input_tokens"]
    assert f"prompt is too long: {tokens} tokens > 511 maximum" in error["message"]
    assert "maximum context length is 512 tokens" in error["message"]


@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}]
)
def test_threads_are_refused_so_that_the_client_sends_the_conversation(client, thread):
    response = client.post("/v1/messages?beta=true", json=ASK | {"thread": thread})
    assert response.status_code == 400
    assert error_of(response, details=True)["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["threads"],
    }
    assert client.post("/v1/messages", json=ASK | {"thread": None}).status_code == 200


class TestOtherPaths:
    """A client of this API gets its format for other paths, too; others get OpenAI's."""

    @pytest.mark.parametrize("path", ["/v1/models/claude-x", "/v1/nothing"])
    def test_by_the_header_of_its_clients(self, client, path):
        assert error_of(client.get(path, headers=VERSION))["type"] == "not_found_error"
        assert set(client.get(path).json()) == {"error"}

    def test_a_path_that_only_begins_like_it(self, client):
        assert set(client.get("/v1/messages_of_others").json()) == {"error"}


def test_the_request_id_is_the_clients_own(client):
    response = client.post("/v1/messages", json={}, headers={"x-request-id": "mine-1"})
    assert json.loads(response.content)["request_id"] == "mine-1"
    error_of(response)
