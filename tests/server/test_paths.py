"""A slash too many in a path is ignored, without a redirect, which would lose a body."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.middleware.plain_path import plain_path
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def request_to():
    """Sends a request to a path as it is written: httpx reads `//v1` as a host."""
    with live(ScriptedEngine(words("ok"))) as server, httpx.Client() as http:
        yield lambda method, path, **body: http.request(method, server.url + path, **body)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/",
        "/v1/models//",
        "//v1/models",
        "/v1//models",
        "/v1/models/?limit=1",
        "/v1/models/toy/",
        "/health/",
        "//metrics/",
    ],
)
def test_a_get_ignores_them(request_to, method, path):
    response = request_to(method, path)
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions/", "//v1/chat/completions", "/tokenize/"])
def test_a_post_keeps_its_body(request_to, path):
    body = {"model": "toy", "prompt": "hi"} if "tokenize" in path else CHAT
    assert request_to("POST", path, json=body).status_code == 200


def test_a_wrong_method_stays_one(request_to):
    assert request_to("DELETE", "/v1/models/").status_code == 405
    assert request_to("OPTIONS", "/v1/models/").status_code == 405
    assert request_to("GET", "/v1/nothing/").status_code == 404
    assert request_to("POST", "//").status_code == 405


def test_metrics_know_one_route(request_to):
    request_to("POST", "/v1/chat/completions/", json=CHAT)
    routes = [
        line for line in request_to("GET", "/metrics").text.splitlines() if "http_responses" in line
    ]
    assert any('route="/v1/chat/completions"' in line for line in routes)
    assert not any('completions/"' in line for line in routes)


@given(st.text(alphabet="/ab.%", max_size=20))
def test_a_plain_path_has_no_slash_too_many(rest):
    path = plain_path("/" + rest)
    assert path.startswith("/")
    assert "//" not in path
    assert path == "/" or not path.endswith("/")
    assert plain_path(path) == path
    assert path.replace("/", "") == rest.replace("/", "")
