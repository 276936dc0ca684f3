"""`api_document`: the OpenAPI document of the server, from its routes, bodies and answers."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from app.server.openapi.operations import Operation, groups, operations
from app.server.openapi.schemas import Schemas
from app.server.wire.described import EVENT_STREAM, JSON, NDJSON, AnswerForm
from app.server.wire.fields import IGNORED_HEADER, WITHOUT_EFFECT_HEADER

OPENAPI = "3.1.0"
ITEM_SCHEMA = "x-itemSchema"
"""Where a stream's media type has the schema of one event or line; OpenAPI 3.2 calls it `itemSchema`."""
SCOPE = "x-pravaha-scope"

_DESCRIPTION = """\
Pravāha's HTTP API: that of OpenAI (chat completions, completions, responses, files, vector stores), of \
Anthropic (messages), of Ollama, of llama.cpp's server, and its own.

Members of a body that are not declared here are ignored and listed in the header \
`x-pravaha-ignored-fields`, known ones without an effect in `x-pravaha-without-effect`. Clients that send \
the header `anthropic-version` get errors in Anthropic's form everywhere."""

_HEADERS: Mapping[str, tuple[str, str]] = {
    "IgnoredFields": (IGNORED_HEADER, "Paths of the body's members that were ignored."),
    "WithoutEffect": (
        WITHOUT_EFFECT_HEADER,
        "Paths of the body's members that have no effect here.",
    ),
}
_SECURITY: Mapping[str, Mapping[str, str]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer KEY`"},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}
_WITHOUT_CONTENT = (202, 204, 405)


def api_document(routes: Iterable[BaseRoute], *, needs_key: bool) -> dict[str, Any]:
    """The document.

    Args:
        routes: of the application.
        needs_key: whether the server has an API key.
    """
    found = operations(routes)
    answers = [kind for one in found for kind in _answered(one.answer)]
    schemas = Schemas(
        [one.body.kind for one in found if one.body is not None],
        [*answers, *(one.error for one in found)],
    )
    parameters = _parameters(found)
    paths: dict[str, dict[str, Any]] = {}
    for one in found:
        fields = _operation(one, schemas, parameters.get(one.id, []), needs_key=needs_key)
        paths.setdefault(one.path, {})[one.method.lower()] = fields
    return {
        "openapi": OPENAPI,
        "info": {
            "title": "Pravāha",
            "version": metadata.version("pravaha"),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in groups(found).items()],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "headers": {
                name: {"description": text, "schema": {"type": "string"}}
                for name, (_, text) in _HEADERS.items()
            },
            **({"securitySchemes": _SECURITY} if needs_key else {}),
        },
    }


def _answered(form: AnswerForm) -> list[Any]:
    """The types in an answer."""
    return [kind for kind in (form.whole, form.events, form.lines) if kind is not None]


def _parameters(found: Sequence[Operation]) -> dict[str, list[dict[str, Any]]]:
    """The parameters of operations in path, query and headers, by the operation's id."""
    routes = []
    for one in found:
        route = copy.copy(one.route)
        route.methods, route.operation_id = {one.method}, one.id
        routes.append(route)
    described = get_openapi(title="", version="", routes=routes)
    return {
        one["operationId"]: [_parameter(each) for each in one.get("parameters", [])]
        for path in described["paths"].values()
        for one in path.values()
    }


def _parameter(given: dict[str, Any]) -> dict[str, Any]:
    schema = {name: value for name, value in given["schema"].items() if name != "title"}
    return {**given, "schema": schema}


def _operation(
    one: Operation, schemas: Schemas, parameters: Sequence[Any], *, needs_key: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "operationId": one.id,
        "tags": [one.group],
        "summary": one.summary,
        SCOPE: one.scope,
    }
    if one.description:
        fields["description"] = one.description
    if parameters:
        fields["parameters"] = parameters
    if one.body is not None:
        schema = schemas.read(one.body.kind)
        content = {one.body.media_type: {"schema": schema}}
        fields["requestBody"] = {"required": True, "content": content}
    error = {JSON: {"schema": schemas.answered(one.error)}}
    fields["responses"] = {
        **_responses(one, schemas),
        "4XX": {"description": "The request is refused.", "content": error},
        "5XX": {"description": "The server cannot answer.", "content": error},
    }
    if needs_key:
        fields["security"] = [] if one.scope == "public" else [{name: []} for name in _SECURITY]
    return fields


def _responses(one: Operation, schemas: Schemas) -> dict[str, Any]:
    """The responses that are no errors."""
    form, headers = one.answer, {}
    if one.body_class is not None:
        headers = {
            header: {"$ref": f"#/components/headers/{name}"}
            for name, (header, _) in _HEADERS.items()
        }
    content = _content(form, schemas)
    responses = {}
    for status, text in {form.status: "Successful.", **form.also}.items():
        responses[str(status)] = {
            "description": text,
            **({"headers": headers} if headers else {}),
            **({"content": content} if content and status not in _WITHOUT_CONTENT else {}),
        }
    return responses


def _content(form: AnswerForm, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if form.whole is not None:
        content[form.media_type] = {"schema": schemas.answered(form.whole)}
    for media_type, kind in ((EVENT_STREAM, form.events), (NDJSON, form.lines)):
        if kind is not None:
            content[media_type] = {
                "schema": {"type": "string"},
                ITEM_SCHEMA: schemas.answered(kind),
            }
    return content
