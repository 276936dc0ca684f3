"""The OpenAPI document and its page: complete, valid, and what the server really answers."""

import json
import re

import httpx
import jsonschema
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from openapi_spec_validator import validate

from app.server.app import all_routes
from app.server.middleware.auth import walk_routes
from app.server.openapi.document import ITEM_SCHEMA
from app.server.openapi.operations import operations
from app.server.openapi.page import api_page
from app.server.openapi.schemas import body_classes
from app.server.wire.described import answer_form
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

CHAT = {"model": "toy", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
RESPONSE = {"model": "toy", "input": "hi", "max_output_tokens": 4}


@pytest.fixture(scope="module")
def document(client):
    response = client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    return response.json()


def conforms(document, value, schema):
    jsonschema.Draft202012Validator(schema | {"components": document["components"]}).validate(value)


def test_the_document_is_valid(document):
    assert document["openapi"].startswith("3.1.")
    validate(document)


def test_every_route_is_in_the_document(document):
    routes = [one for one in walk_routes(all_routes()) if isinstance(one, APIRoute)]
    served = {(m.lower(), one.path_format) for one in routes for m in one.methods - {"HEAD"}}
    described = {(m, path) for path, methods in document["paths"].items() for m in methods}
    assert described == served
    assert len(described) > 100


def test_operations_have_an_id_a_summary_a_scope_and_errors_of_their_face(document):
    found = [one for methods in document["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in found]
    assert len(set(ids)) == len(ids)
    assert all(one["summary"] and one["x-pravaha-scope"] for one in found)
    for path, face in {
        "/v1/chat/completions": "ErrorAnswer",
        "/v1/messages": "AnthropicErrorAnswer",
        "/api/chat": "OllamaErrorAnswer",
    }.items():
        for status in ("4XX", "5XX"):
            answer = document["paths"][path]["post"]["responses"][status]
            (content,) = answer["content"].values()
            assert content["schema"] == {"$ref": f"#/components/schemas/{face}"}


def test_every_endpoint_says_what_it_answers():
    """By `@answers` (app/server/wire/described.py)."""
    routes = [one for one in walk_routes(all_routes()) if isinstance(one, APIRoute)]
    assert [one.path for one in routes if answer_form(one.endpoint) is None] == []


def test_every_parameter_of_a_query_is_described(document):
    parameters = document["paths"]["/v1/vector_stores"]["get"]["parameters"]
    limits = {one["name"]: one["schema"] for one in parameters if one["in"] == "query"}
    assert limits.keys() == {"limit", "order", "after", "before"}
    assert limits["limit"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    (header,) = [
        one
        for one in document["paths"]["/streams/{request_id}"]["get"]["parameters"]
        if one["in"] == "header"
    ]
    assert header["name"] == "last-event-id"


def test_a_body_has_its_whole_table(document):
    body = document["components"]["schemas"]["ChatCompletionRequest"]
    members = body["properties"]
    assert body["required"] == ["model", "messages"]
    assert members["temperature"]["description"]
    assert members["user"]["description"].startswith("Without effect: ")
    assert members["min_tokens"]["enum"] == [None, 0]
    assert body["additionalProperties"] is True
    options = document["components"]["schemas"]["StreamOptions"]
    assert options["additionalProperties"] is False


def test_null_is_as_good_as_leaving_a_member_out(document):
    members = document["components"]["schemas"]["AgentRunRequest"]["properties"]
    assert members["task"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert members["tokens"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert members["name"]["type"] == "string"


def test_every_member_of_a_body_says_what_it_is(document):
    """By a text under it in its class."""
    schemas = document["components"]["schemas"]
    silent = [
        f"{kind.__name__}.{name}"
        for kind in body_classes()
        for name, member in schemas.get(kind.__name__, {}).get("properties", {}).items()
        if not member.get("description")
    ]
    assert silent == []


@pytest.mark.parametrize(("key", "schemes"), [(None, set()), ("sk-1", {"bearer", "key"})])
def test_the_security_scheme_is_there_with_a_key(key, schemes):
    with live(ScriptedEngine(words("ok")), api_key=key) as server:
        found = httpx.get(f"{server.url}/openapi.json", timeout=60).json()
        page = httpx.get(f"{server.url}/docs", timeout=60)
    assert page.status_code == 200
    assert found["components"].get("securitySchemes", {}).keys() == schemes
    chat = found["paths"]["/v1/chat/completions"]["post"]
    assert {name for one in chat.get("security", ()) for name in one} == schemes
    assert found["paths"]["/health"]["get"].get("security", []) == []


def contents_of(document, method, path):
    return document["paths"][path][method]["responses"]["200"]["content"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", CHAT | {"logprobs": True, "top_logprobs": 2}),
        ("/v1/completions", {"model": "toy", "prompt": "hi", "max_tokens": 3, "logprobs": 2}),
        ("/v1/messages", CHAT),
        ("/v1/messages/count_tokens", {"model": "toy", "messages": CHAT["messages"]}),
        ("/v1/responses", RESPONSE),
        ("/v1/responses/input_tokens", {"model": "toy", "input": "hi"}),
        ("/v1/responses/compact", {"model": "toy", "input": "hi"}),
        ("/api/chat", {"model": "toy", "messages": CHAT["messages"], "stream": False}),
        ("/api/generate", {"model": "toy", "prompt": "hi", "stream": False}),
        ("/api/show", {"model": "toy"}),
        ("/completion", {"prompt": "hi", "n_predict": 3}),
        ("/tokenize", {"prompt": "hi", "with_pieces": True}),
        ("/price", {"tokens": [1, 2]}),
        ("/residency", {"tokens": [1, 2]}),
        ("/v1/moderations", {"input": "Mail me at a@example.com"}),
    ],
)
def test_an_answer_is_as_described(client, document, path, body):
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    schema = contents_of(document, "post", path)["application/json"]["schema"]
    conforms(document, response.json(), schema)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models", "/v1/sessions", "/props", "/slots", "/api/tags", "/api/ps", "/api/version",
        "/installed_models", "/tokenizer_info", "/snapshot", "/blocks", "/events", "/requests",
        "/steps", "/prefix_tree", "/health", "/ready",
    ],
)  # fmt: skip
def test_what_a_get_answers_is_as_described(client, document, path):
    client.post("/v1/completions", json={"model": "toy", "prompt": "hi", "max_tokens": 2})
    response = client.get(path)
    assert response.status_code == 200
    schema = contents_of(document, "get", path)["application/json"]["schema"]
    conforms(document, response.json(), schema)


@pytest.mark.parametrize(
    ("path", "body", "count"),
    [
        ("/v1/chat/completions", CHAT | {"stream_options": {"include_usage": True}}, 3),
        ("/v1/completions", {"model": "toy", "prompt": "hi", "max_tokens": 3}, 1),
        ("/v1/messages", CHAT, 5),
        ("/v1/responses", RESPONSE, 5),
        ("/completion", {"prompt": "hi", "n_predict": 3}, 1),
        ("/api/chat", {"model": "toy", "messages": CHAT["messages"]}, 1),
        ("/api/generate", {"model": "toy", "prompt": "hi"}, 1),
    ],
)
def test_every_event_of_a_stream_is_as_described(client, document, path, body, count):
    response = client.post(path, json=body | {"stream": True})
    media_type = response.headers["content-type"].partition(";")[0]
    schema = contents_of(document, "post", path)[media_type][ITEM_SCHEMA]
    if media_type == "text/event-stream":
        found = re.findall(r"^data: (\{.*)$", response.text, re.MULTILINE)
    else:
        found = response.text.splitlines()
    assert len(found) >= count
    for one in found:
        conforms(document, json.loads(one), schema)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"model": "toy"}),
        ("/v1/messages", {"model": "toy"}),
        ("/api/chat", {"messages": []}),
        ("/api/nothing", {}),
        ("/completion", {}),
    ],
)
def test_an_error_is_as_described(client, document, path, body):
    """Also where no route is: an error of the server around the routes has the same form."""
    response = client.post(path, json=body)
    assert response.status_code in (400, 404)
    described = document["paths"].get(path, document["paths"]["/api/chat"])["post"]
    conforms(
        document,
        response.json(),
        described["responses"]["4XX"]["content"]["application/json"]["schema"],
    )


def test_the_page_shows_all_and_loads_nothing(client, document):
    response = client.get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = response.text
    assert not re.search(r"<(script|img|iframe|link|object)\b|\bsrc=|url\(|@import|https?://", page)
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    for name in document["components"]["schemas"]:
        assert f'id="{name}"' in page
    links, ids = re.findall(r'href="#([^"]+)"', page), re.findall(r'\bid="([^"]+)"', page)
    assert set(links) <= set(ids)
    assert len(set(ids)) == len(ids)


def test_the_page_escapes_what_the_document_says(document):
    changed = document | {"info": document["info"] | {"title": "<script>alert(1)</script>"}}
    assert "<script>" not in api_page(changed)


def test_a_route_that_is_kept_out_of_the_document_is_not_in_it():
    router = APIRouter()
    router.add_api_route("/hidden", lambda: None, include_in_schema=False)
    assert isinstance(router.routes[0], APIRoute)
    assert operations(router.routes) == []
