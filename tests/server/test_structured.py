"""Structured output over HTTP: every form of the request, and refusals that name the field."""

import json
import re
from functools import partialmethod

import httpx
import openai
import pytest
from pydantic import BaseModel

from engine.grammar.checker import Checker
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{1,8}$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
LARK = 'start: "<" WORD ">"\nWORD: /[a-z]{1,6}/'


@pytest.fixture(scope="module")
def server():
    """Builds of grammars have a fifth of a second, so that none in these tests need be costly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checker, "__init__", partialmethod(Checker.__init__, cpu_s=0.2))
        with byte_engine() as engine, live(engine) as running:
            yield running


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def chat(http, **fields):
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 200,
        "seed": 1,
    }
    return http.post("/v1/chat/completions", json=body | fields)


def complete(http, **fields):
    body = {"model": "toy", "prompt": "hi", "max_tokens": 200, "seed": 1}
    return http.post("/v1/completions", json=body | fields)


def json_schema(schema, **more):
    return {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, **more}}


def is_person(text):
    person = json.loads(text)
    return list(person) == ["name", "age"] and person["name"].islower() and person["age"] <= 120


SPELLINGS = {
    "json_schema": ({"response_format": json_schema(PERSON)}, is_person),
    "strict": ({"response_format": json_schema(PERSON, strict=True)}, is_person),
    "not strict": ({"response_format": json_schema(PERSON, strict=False)}, is_person),
    "json_object": ({"response_format": {"type": "json_object", "schema": PERSON}}, is_person),
    "bare json_schema": ({"response_format": {"type": "json_schema", "schema": PERSON}}, is_person),
    "nameless json_schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": PERSON}}}, is_person,
    ),
    "json_schema of llama.cpp": ({"json_schema": PERSON}, is_person),
    "guided_json": ({"guided_json": PERSON}, is_person),
    "guided_json as text": ({"guided_json": json.dumps(PERSON)}, is_person),
    "guided_regex": ({"guided_regex": "[0-9]{3}-x"}, re.compile("[0-9]{3}-x").fullmatch),
    "guided_choice": ({"guided_choice": ["left", "right"]}, {"left", "right"}.__contains__),
    "guided_grammar": ({"guided_grammar": LARK}, re.compile("<[a-z]{1,6}>").fullmatch),
    "structured json": ({"structured_outputs": {"json": PERSON}}, is_person),
    "structured regex": ({"structured_outputs": {"regex": "[0-9]{2}"}}, str.isdecimal),
    "structured choice": ({"structured_outputs": {"choice": ["é", "ü"]}}, {"é", "ü"}.__contains__),
    "structured grammar": (
        {"structured_outputs": {"grammar": LARK}}, re.compile("<[a-z]{1,6}>").fullmatch,
    ),
}  # fmt: skip


@pytest.mark.parametrize("ask", [chat, complete])
@pytest.mark.parametrize("name", SPELLINGS)
def test_every_form_of_the_request_constrains_the_answer(http, name, ask):
    fields, holds = SPELLINGS[name]
    response = ask(http, **fields)
    assert response.status_code == 200, response.text
    assert "x-pravaha-ignored-fields" not in response.headers
    choice = response.json()["choices"][0]
    text = choice["message"]["content"] if ask is chat else choice["text"]
    assert holds(text), text
    assert choice["finish_reason"] == "stop"


def test_the_format_text_constrains_nothing(http):
    free = chat(http, max_tokens=20).json()["choices"][0]
    assert chat(http, max_tokens=20, response_format={"type": "text"}).json()["choices"][0] == free


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object", "schema": {}}},
        {"response_format": {"type": "json_object", "schema": None}},
        {"structured_outputs": {"json_object": True}},
    ],
)
def test_a_json_object_is_one_whatever_the_model_would_write(http, fields):
    # Random letters seldom close a string or an object: make that likely, not certain.
    bias = {str(ord(letter)): 6 for letter in '"}:'}
    choices = chat(http, **fields, logit_bias=bias, n=4).json()["choices"]
    assert [choice["finish_reason"] for choice in choices] == ["stop"] * 4
    objects = [json.loads(choice["message"]["content"]) for choice in choices]
    assert all(isinstance(one, dict) for one in objects)
    assert any(objects)  # not only `{}`


TAGS = {
    "type": "array",
    "items": {"type": "string", "format": "a, b", "pattern": "^[a-z]{1,3}$"},
    "uniqueItems": True,
    "maxItems": 2,
}


@pytest.mark.parametrize("ask", [chat, complete])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {"guided_json": TAGS},
        {"structured_outputs": {"json": TAGS}},
        {"response_format": json_schema(TAGS)},
        {"response_format": {"type": "json_object", "schema": TAGS}},
    ],
)
def test_what_a_schema_says_in_vain_is_listed_in_a_header(http, ask, stream, fields):
    response = ask(http, stream=stream, **fields)
    assert response.status_code == 200, response.text
    assert response.headers["x-pravaha-not-enforced"] == "format:a%2C%20b,uniqueItems"


def test_a_schema_that_is_enforced_has_no_such_header(http):
    assert "x-pravaha-not-enforced" not in chat(http, guided_json=PERSON).headers


def test_a_stream_adds_up_to_the_whole(http):
    whole = chat(http, guided_json=PERSON).json()["choices"][0]["message"]["content"]
    text = ""
    body = {"model": "toy", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 200,
            "seed": 1, "stream": True, "guided_json": PERSON}  # fmt: skip
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                delta = json.loads(line[6:])["choices"][0]["delta"]
                text += delta.get("content") or ""
    assert text == whole
    assert is_person(text)


def test_choices_differ_and_all_match_the_schema(http):
    choices = chat(http, guided_json=PERSON, n=4, temperature=1.5).json()["choices"]
    texts = {one["message"]["content"] for one in choices}
    assert len(texts) > 1
    assert all(map(is_person, texts))


def nested(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


REFUSED = {
    "unknown type": ({"response_format": {"type": "yaml"}}, "response_format.type"),
    "no schema": (
        {"response_format": {"type": "json_schema"}}, "response_format.json_schema",
    ),
    "schema without type": (
        {"response_format": {"type": "json_object", "json_schema": {"name": "a", "schema": {}}}},
        "response_format.json_schema",
    ),
    "two schemas": (
        {"response_format": json_schema({}) | {"schema": {}}}, "response_format.schema",
    ),
    "schema of a text": ({"response_format": {"type": "text", "schema": {}}}, "response_format.schema"),
    "schema as text": (
        {"response_format": {"type": "json_object", "schema": "{}"}}, "response_format.schema",
    ),
    "bare keyword": (
        {"response_format": {"type": "json_object", "schema": {"type": "none"}}},
        "response_format.schema",
    ),
    "bad name": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
        "response_format.json_schema.name",
    ),
    "keyword": (
        {"response_format": json_schema({"not": {}})}, "response_format.json_schema.schema",
    ),
    "guided_json": ({"guided_json": {"not": {}}}, "guided_json"),
    "guided_json text": ({"guided_json": "{"}, "guided_json"),
    "guided_json of 200 levels": ({"guided_json": nested(200)}, "guided_json"),
    "schema of 200 levels": (
        {"response_format": json_schema(nested(200))}, "response_format.json_schema.schema",
    ),
    "structured json of 200 levels": (
        {"structured_outputs": {"json": nested(200)}}, "structured_outputs.json",
    ),
    "guided_regex": ({"guided_regex": "(["}, "guided_regex"),
    "guided_choice": ({"guided_choice": []}, "guided_choice"),
    "guided_choice of nothing": ({"guided_choice": [""]}, "guided_choice[0]"),
    "guided_grammar": ({"guided_grammar": "start: x"}, "guided_grammar"),
    "structured": ({"structured_outputs": {"json": {"not": {}}}}, "structured_outputs.json"),
    "structural_tag": (
        {"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag",
    ),
    "two": ({"guided_regex": "a", "guided_json": {}}, "guided_regex"),
    "two kinds": ({"guided_regex": "a", "response_format": {"type": "json_object"}}, "guided_regex"),
    "ignore_eos": ({"guided_regex": "a", "ignore_eos": True}, "ignore_eos"),
    "too costly": ({"guided_json": {"type": "integer", "multipleOf": 199_999}}, "guided_json"),
}  # fmt: skip


@pytest.mark.parametrize("ask", [chat, complete])
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_field(http, server, name, ask):
    fields, param = REFUSED[name]
    response = ask(http, **fields)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert error["message"].endswith(".")
    wait_until(lambda: is_quiet(server.context.engine))


def test_the_official_client_does_not_retry_a_grammar_that_is_too_costly(server):
    sent = []
    counting = httpx.Client(event_hooks={"request": [sent.append]})
    client = openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="x", max_retries=3, http_client=counting
    )
    fields, param = REFUSED["too costly"]
    with pytest.raises(openai.BadRequestError, match="make it simpler") as refused:
        client.completions.create(model="toy", prompt="hi", extra_body=fields)
    assert refused.value.param == param
    assert len(sent) == 1


def test_the_official_client_parses_into_a_model(server):
    class Person(BaseModel):
        name: str
        age: int

    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
    answer = client.chat.completions.parse(
        model="toy", messages=[{"role": "user", "content": "hi"}], response_format=Person,
        max_tokens=300, seed=2, logit_bias={str(ord('"')): 8},
    )  # fmt: skip
    assert isinstance(answer.choices[0].message.parsed, Person)
