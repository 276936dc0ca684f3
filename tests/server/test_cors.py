"""Web pages of other sites: which may read answers, and that every answer can then be read."""

import httpx
import pytest

from app.server.process.config import ServerConfig
from app.server.process.server import listen
from engine.api.errors import PravahaError
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

KEY = "sk-test-5b1f"
PAGE = "https://chat.example"
OTHER = "https://evil.example"
CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def client():
    origins = (PAGE, "http://localhost:3000")
    with (
        live(
            ScriptedEngine(words("ok")), api_key=KEY, cors_origins=origins, max_body_bytes=10_000
        ) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        yield http


def preflight(client, path="/v1/chat/completions", origin=PAGE, method="POST", **headers):
    asked = {"access-control-request-headers": "authorization,content-type,x-stainless-lang"}
    asked |= {"origin": origin, "access-control-request-method": method}
    return client.options(path, headers=asked | headers)


def from_page(origin=PAGE, **headers):
    return {"origin": origin, "authorization": f"Bearer {KEY}"} | headers


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/", "/v1//models"])
def test_a_preflight_is_answered_without_a_key(client, path):
    response = preflight(client, path)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == PAGE
    assert "origin" in response.headers["vary"].lower()
    allowed = response.headers["access-control-allow-headers"].lower()
    assert {"authorization", "content-type", "x-stainless-lang"} <= set(allowed.split(","))
    assert "POST" in response.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_every_method_of_the_api_may_be_asked_for(client, method):
    assert preflight(client, "/v1/files/x", method=method).status_code == 200


def test_a_page_of_the_internet_may_ask_a_server_of_this_machine(client):
    asked = {"access-control-request-private-network": "true"}
    response = preflight(client, **asked)
    assert response.headers["access-control-allow-private-network"] == "true"


@pytest.mark.parametrize(
    "origin", [OTHER, "https://chat.example.evil.example", "http://chat.example", "null", ""]
)
def test_other_pages_get_no_permission(client, origin):
    for response in (
        preflight(client, origin=origin),
        client.get("/v1/models", headers=from_page(origin)),
    ):
        assert "access-control-allow-origin" not in response.headers
        assert "origin" in response.headers["vary"].lower()
    assert preflight(client, origin=origin).status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/v1/models", None, {}, 200),
        ("GET", "/health", None, {}, 200),
        ("POST", "/v1/chat/completions", CHAT, {}, 200),
        ("POST", "/v1/chat/completions", CHAT | {"stream": True}, {}, 200),
        ("POST", "/v1/chat/completions", CHAT | {"n": 0}, {}, 400),
        ("POST", "/v1/chat/completions", CHAT, {"authorization": "Bearer no"}, 401),
        ("POST", "/v1/chat/completions", CHAT, {"host": "elsewhere.example"}, 403),
        ("GET", "/nowhere", None, {}, 404),
        ("GET", "/v1/chat/completions", None, {}, 405),
        ("POST", "/v1/chat/completions", {"x": "y" * 20_000}, {}, 413),
        ("POST", "/v1/chat/completions", CHAT, {"content-encoding": "gzip"}, 415),
    ],
)
def test_every_answer_can_be_read_by_an_allowed_page(client, method, path, body, headers, status):
    response = client.request(method, path, json=body, headers=from_page() | headers)
    assert response.status_code == status
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["vary"] == "Origin"
    exposed = response.headers["access-control-expose-headers"]  # `*`: such a page sends no cookies
    assert exposed == "*"
    assert "x-request-id" in response.headers


def test_a_failure_of_the_server_can_be_read_too():
    engine = ScriptedEngine(lambda request: RuntimeError("no"))
    with live(engine, cors_origins=(PAGE,)) as server:
        url = f"{server.url}/v1/chat/completions"
        response = httpx.post(url, json=CHAT, headers={"origin": PAGE})
    assert response.status_code == 500
    assert response.headers["access-control-allow-origin"] == PAGE


def test_the_answers_to_programs_vary_by_origin_too(client):
    response = client.get("/v1/models", headers={"authorization": f"Bearer {KEY}"})
    assert response.headers["vary"] == "Origin"  # a cache must not give it to a page
    assert "access-control-allow-origin" not in response.headers


def test_every_page_may_ask_a_server_with_a_key_that_is_open_to_all():
    with (
        live(ScriptedEngine(words("ok")), api_key=KEY, cors_origins=("*",)) as server,
        httpx.Client(base_url=server.url) as http,
    ):
        assert preflight(http, origin=OTHER).headers["access-control-allow-origin"] == "*"
        response = http.get("/v1/models", headers=from_page(OTHER))
        assert response.headers["access-control-allow-origin"] == "*"
        assert http.get("/v1/models", headers={"origin": OTHER}).status_code == 401


@pytest.mark.parametrize("origin", ["*", "null"])
def test_a_server_without_a_key_is_not_opened_to_every_page(origin):
    with pytest.raises(PravahaError, match=r"Refusing to answer every web page .* without an API"):
        listen(ServerConfig(port=0, cors_origins=(PAGE, origin)))


def test_without_the_setting_no_page_gets_permission():
    with live(ScriptedEngine(words("ok"))) as server, httpx.Client(base_url=server.url) as http:
        for response in (preflight(http), http.get("/v1/models", headers=from_page())):
            assert not [name for name in response.headers if name.startswith("access-control-")]
