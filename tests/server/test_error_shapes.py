import json
from contextlib import suppress

import httpx
import pytest

from app.server.process.connection import Connection
from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull
from engine.api.events import RequestQueued
from engine.api.snapshot import EngineState
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}


def error_of(response):
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    return error


@pytest.fixture(scope="module")
def server():
    with live(
        ScriptedEngine(words("ok")), max_body_bytes=10_000, max_image_bytes=0, body_timeout_s=0.5
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.url) as http:
        yield http


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/", 405),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("BREW", "/v1/models", 405),
        ("GET", "/blocks?since=x", 400),
        ("GET", "/blocks?since=-2", 400),
        ("GET", "/events?since=-1", 400),
        ("GET", "/steps?since=x", 400),
        ("POST", "/docs", 405),
        ("GET", "/redoc", 404),
    ],
)
def test_framework_errors_have_the_shape(client, method, path, status):
    response = client.request(method, path)
    assert response.status_code == status
    error_of(response)


def test_an_unknown_model_is_404_with_its_code(client):
    response = client.post("/v1/chat/completions", json=CHAT | {"model": "gpt-9"})
    assert response.status_code == 404
    error = error_of(response)
    assert (error["code"], error["param"]) == ("model_not_found", "model")


@pytest.mark.parametrize(
    ("refusal", "status", "kind"),
    [
        (QueueFull("full"), 429, "rate_limit_error"),
        (EngineUnavailable("gone"), 503, "overloaded_error"),
        (InvalidRequest("no", param="stop"), 400, "invalid_request_error"),
        (RuntimeError("secret detail"), 500, "server_error"),
    ],
)
def test_engine_refusals(refusal, status, kind):
    with live(ScriptedEngine(lambda request: refusal)) as server:
        response = httpx.post(f"{server.url}/v1/chat/completions", json=CHAT)
        assert httpx.get(f"{server.url}/health").status_code == 200
        metrics = httpx.get(f"{server.url}/metrics").text
    assert response.status_code == status
    assert error_of(response)["type"] == kind
    assert "secret" not in response.text
    assert response.headers["x-request-id"]
    assert f'route="/v1/chat/completions",status="{status}"}} 1.0' in metrics
    if status in (429, 503):
        assert int(response.headers["retry-after"]) > 0
        assert int(response.headers["retry-after-ms"]) > 0
        assert response.headers["x-should-retry"] == "true"


def test_no_choice_is_queued_if_the_queue_is_too_small_for_all():
    queued = []
    with byte_engine(max_queue=3) as engine, live(engine) as server:
        engine.events.subscribe(RequestQueued, queued.append)
        response = httpx.post(f"{server.url}/v1/chat/completions", json=CHAT | {"n": 4})
    assert response.status_code == 429
    assert queued == []


def test_the_request_id_is_echoed_unless_it_is_hostile(client):
    given = client.get("/health", headers={"x-request-id": "abc-1"})
    assert given.headers["x-request-id"] == "abc-1"
    hostile = client.get("/health", headers={"x-request-id": "x" * 500})
    assert hostile.headers["x-request-id"].startswith("req-")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json; charset=utf-16"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": "application/json; charset=utf-8"}, 400),
        ({"content-type": "application/json", "content-encoding": "Identity"}, 400),
    ],
)
def test_only_plain_json_is_read(client, headers, status):
    response = client.post("/v1/chat/completions", content=b"{}", headers=headers)
    assert response.status_code == status
    error_of(response)


def exchange(server, request: bytes) -> bytes:
    with server.connect() as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
)


def test_an_oversized_declared_body_is_refused_before_it_is_read(server):
    answer = exchange(server, HEAD + b"content-length: 99999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in answer


def test_an_oversized_chunked_body_is_refused_at_the_limit(server):
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    answer = exchange(server, HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk * 3)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_never_arrives_times_out(server):
    answer = exchange(server, HEAD + b"content-length: 10\r\nconnection: close\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_client_that_leaves_within_its_body_is_no_error(server, caplog):
    def disconnects():
        metrics = httpx.get(f"{server.url}/metrics").text
        name = (
            'pravaha_http_responses_total{method="POST",route="/v1/chat/completions",status="499"}'
        )
        return sum(float(line.split()[-1]) for line in metrics.splitlines() if name in line)

    before = disconnects()
    with server.connect() as connection:
        connection.sendall(HEAD + b"content-length: 10\r\n\r\n{")
    wait_until(lambda: disconnects() == before + 1)
    assert caplog.records == []


def test_get_routes_answer_head_without_a_body(client):
    for path in ("/v1/models", "/health", "/metrics"):
        response = client.head(path)
        assert (response.status_code, response.content) == (200, b"")


def test_huge_headers_are_refused(server):
    # uvicorn may reset the connection while we are still sending.
    with suppress(ConnectionError):
        answer = exchange(server, HEAD + b"x: " + b"y" * 200_000 + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 4")
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_what_is_not_http_is_refused_in_the_same_shape(server):
    head, _, body = exchange(server, b"NOT HTTP\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "invalid_http"


@pytest.mark.parametrize("start", [b"", b"GET /health HTTP/1.1\r\nx: "])
def test_headers_that_never_end_time_out(monkeypatch, server, start):
    monkeypatch.setattr(Connection, "head_s", 0.05)
    assert exchange(server, start) == b""


def test_the_headers_of_a_second_request_have_their_own_timeout(monkeypatch, server):
    monkeypatch.setattr(Connection, "head_s", 0.05)
    with server.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)
        connection.sendall(b"GET /hea")
        assert connection.recv(65536) == b""


def test_ready_says_no_while_loading_and_when_the_engine_stalls():
    engine = ScriptedEngine(words("ok"))
    with live(engine, stall_s=5.0) as server:
        assert httpx.get(f"{server.url}/ready").status_code == 200
        engine.state = EngineState.LOADING
        assert httpx.get(f"{server.url}/ready").status_code == 503
        engine.state = EngineState.READY
        engine.time -= 10.0
        # An idle engine does not stall.
        assert httpx.get(f"{server.url}/ready").status_code == 200
        engine.running = 1
        response = httpx.get(f"{server.url}/ready")
        assert response.status_code == 503
        assert response.json() == {"status": "not ready"}
        assert httpx.get(f"{server.url}/health").status_code == 200


@pytest.mark.parametrize(("layers", "status"), [(None, 200), (("seccomp",), 200), ((), 503)])
def test_ready_says_no_where_agents_commands_have_no_sandbox(layers, status):
    with live(ScriptedEngine(words("ok")), sandbox_layers=layers) as server:
        assert httpx.get(f"{server.url}/ready").status_code == status
