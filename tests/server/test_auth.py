from typing import get_args

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

from app.server.app import create_app
from app.server.middleware.auth import RouteScope, scope_of, walk_routes
from app.server.process.config import ServerConfig, is_loopback
from app.server.process.server import listen
from engine.api.errors import PravahaError
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

KEY = "sk-test-5b1f"


@pytest.fixture(scope="module")
def guarded():
    with (
        live(ScriptedEngine(words("ok")), api_key=KEY) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


def routes():
    return list(walk_routes(create_app(ScriptedEngine(words("ok"))).routes))


def test_every_route_declares_a_scope():
    assert len(routes()) >= 12
    for route in routes():
        assert isinstance(route, APIRoute | APIWebSocketRoute), f"{route} cannot declare a scope"
        assert scope_of(route) in get_args(RouteScope), route.path


def test_only_the_probes_and_the_documentation_are_public():
    public = {route.path for route in routes() if scope_of(route) == "public"}
    assert public == {"/", "/health", "/ready", "/docs", "/openapi.json"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (method, route.path.replace("{name:path}", "toy"))
        for route in routes()
        for method in sorted(getattr(route, "methods", ["GET"]))
        if scope_of(route) != "public"
    ]
    + [
        ("GET", "/nowhere"),
        ("GET", "/v1//models/"),
        ("GET", "/health/x"),
        ("OPTIONS", "/v1/models"),
    ],
)
def test_no_key_no_answer(guarded, method, path):
    response = guarded.request(method, path)
    assert response.status_code == 401
    if method != "HEAD":
        error = response.json()["error"]
        if path.startswith("/api/"):
            assert "API key" in error
            return
        assert error["type"] == "authentication_error"
        assert path.startswith("/v1/messages") or error["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({"authorization": f"bearer {KEY}"}, 200),
        ({"x-api-key": KEY}, 200),
        ({"authorization": KEY}, 401),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": f"Bearer {KEY}x"}, 401),
        ({"authorization": f"Bearer {KEY[:-1]}"}, 401),
        ({"authorization": f"Bearer {KEY.upper()}"}, 401),
        ({"authorization": b"Bearer \xff\xfe"}, 401),
        ({"x-api-key": KEY, "authorization": "Bearer placeholder"}, 200),
        ({"x-api-key": "placeholder", "authorization": f"Bearer {KEY}"}, 200),
        ({"x-api-key": KEY, "authorization": "Basic eA=="}, 200),
        ({"x-api-key": "x", "authorization": "Bearer x"}, 401),
        ({"x-api-key": ""}, 401),
        ({}, 401),
    ],
)
def test_credentials(guarded, headers, status):
    assert guarded.get("/v1/models", headers=headers).status_code == status


def test_probes_need_no_key_and_tell_nothing(guarded):
    assert guarded.get("/health").json() == {"status": "ok"}
    assert guarded.get("/health//").json() == {"status": "ok"}
    assert guarded.get("/ready").json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("LOCALHOST:1", 200),
        ("proxy.internal", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example:8000", 403),
        ("", 403),
    ],
)
def test_a_loopback_server_answers_only_to_loopback_names(host, status):
    with live(ScriptedEngine(words("ok")), allowed_hosts=("proxy.internal",)) as server:
        response = httpx.get(f"{server.url}/v1/models", headers={"host": host})
    assert response.status_code == status


def test_no_cross_origin_permission_is_given(guarded):
    headers = {"origin": "http://evil.example", "authorization": f"Bearer {KEY}"}
    response = guarded.get("/v1/models", headers=headers)
    preflight = guarded.options(
        "/v1/models", headers={**headers, "access-control-request-method": "GET"}
    )
    for one in (response, preflight):
        assert not [name for name in one.headers if name.startswith("access-control-")]
    assert preflight.status_code == 405


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_a_public_address_without_a_key_is_refused(host):
    with pytest.raises(PravahaError, match="without an API key"):
        listen(ServerConfig(host=host, port=0))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_what_counts_as_loopback(host, expected):
    assert is_loopback(host) is expected


def test_a_taken_port_is_one_sentence():
    with live(ScriptedEngine(words("ok"))) as server, pytest.raises(PravahaError, match="listen"):
        listen(ServerConfig(port=server.address[1]))
