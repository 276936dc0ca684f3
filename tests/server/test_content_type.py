"""What is read as JSON: from programs all that is JSON, from web pages what says so."""

import json

import httpx
import pytest

from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def client():
    with live(ScriptedEngine(words("ok"))) as server, httpx.Client(base_url=server.url) as http:
        yield http


def post(client, headers, path="/v1/chat/completions", body=CHAT):
    return client.post(path, content=json.dumps(body).encode(), headers=headers)


UNDECLARED = [
    {},
    {"content-type": ""},
    {"content-type": "application/x-www-form-urlencoded"},
    {"content-type": "text/plain;charset=UTF-8"},
    {"content-type": "text/json"},
    {"content-type": "application/octet-stream"},
    {"content-type": "*/*"},
]
PAGE_HEADERS = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-origin"},
]


@pytest.mark.parametrize("headers", UNDECLARED)
def test_a_program_need_not_declare_json(client, headers):
    response = post(client, headers)
    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"] == "ok"


@pytest.mark.parametrize("path", ["/tokenize", "/v1/completions", "/price"])
def test_no_endpoint_needs_the_declaration(client, path):
    body = {"model": "toy", "prompt": "hi", "token_ids": [1], "tokens": [1]}
    assert post(client, {}, path, body).status_code != 415


@pytest.mark.parametrize("page", PAGE_HEADERS)
@pytest.mark.parametrize("headers", UNDECLARED)
def test_a_web_page_gains_nothing(client, headers, page):
    response = post(client, headers | page)
    assert response.status_code == 415
    assert "content-type: application/json" in response.json()["error"]["message"]


@pytest.mark.parametrize("page", PAGE_HEADERS)
def test_a_page_that_declares_json_was_allowed_by_its_browser(client, page):
    assert post(client, {"content-type": "application/json"} | page).status_code == 200


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ('application/json; charset="UTF-8"', 200),
        ("application/json;charset=utf8", 200),
        ("application/json; charset=utf-16", 415),
        ("text/plain; charset=latin-1", 415),
        ("multipart/form-data; boundary=x", 415),
    ],
)
def test_another_encoding_or_a_form_with_files_is_refused(client, content_type, status):
    assert post(client, {"content-type": content_type}).status_code == status


@pytest.mark.parametrize("body", [b"", b"model=toy", b"{", b"\xff\xfe{\x00"])
def test_what_is_no_json_is_refused_as_such(client, body):
    response = client.post("/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_json"
