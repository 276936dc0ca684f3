"""`api_page`: the OpenAPI document as one HTML page, which loads nothing, from this host or another."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from app.server.openapi.document import ITEM_SCHEMA, SCOPE
from app.server.openapi.type_text import type_text

_TEMPLATE = Path(__file__).with_name("page.html")
_NAME = re.compile(r"\w+")


def api_page(document: Mapping[str, Any]) -> str:
    """The page of a document."""
    components = document["components"]["schemas"]
    operations = [
        (path, method, one)
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]
    groups = [
        {
            "name": tag["name"],
            "text": tag["description"],
            "operations": [
                _operation(path, method, one, components)
                for path, method, one in operations
                if tag["name"] in one["tags"]
            ],
        }
        for tag in document["tags"]
    ]
    objects = [_object(name, schema, components) for name, schema in sorted(components.items())]
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=document["info"]["title"],
        description=document["info"]["description"].split("\n\n"),
        version=document["openapi"],
        groups=groups,
        objects=objects,
    )


def _operation(
    path: str, method: str, one: Mapping[str, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    body = None
    for media_type, content in one.get("requestBody", {}).get("content", {}).items():
        body = {"media_type": media_type, "words": _words(content["schema"], components)}
    return {
        "id": one["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": one["summary"],
        "description": one.get("description"),
        "scope": one[SCOPE],
        "parameters": [
            _row(each["name"], each["schema"], each["required"], components, each["in"])
            for each in one.get("parameters", ())
        ],
        "body": body,
        "answers": [
            {"status": status, "text": answer["description"], "forms": _forms(answer, components)}
            for status, answer in one["responses"].items()
        ],
    }


def _forms(answer: Mapping[str, Any], components: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "media_type": media_type,
            "words": _words(content.get(ITEM_SCHEMA, content["schema"]), components),
            "is_stream": ITEM_SCHEMA in content,
        }
        for media_type, content in answer.get("content", {}).items()
    ]


def _object(name: str, schema: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    needed = schema.get("required", ())
    rows = [
        _row(each, member, each in needed, components)
        for each, member in schema.get("properties", {}).items()
    ]
    text = str(schema.get("description", "")).partition("\n")[0]
    return {"name": name, "text": text, "rows": rows, "words": _words(schema, components)}


def _row(
    name: str,
    schema: Mapping[str, Any],
    required: bool,
    components: Mapping[str, Any],
    place: str = "",
) -> dict[str, Any]:
    meaning = schema.get("description") or (f"in the {place}" if place else "")
    return {
        "name": name,
        "required": required,
        "words": _words(schema, components),
        "meaning": meaning,
    }


def _words(schema: Mapping[str, Any], components: Iterable[str]) -> list[dict[str, str | None]]:
    """The text of a schema, with the names of components as links."""
    text, at = type_text(schema), 0
    words: list[dict[str, str | None]] = []
    for match in _NAME.finditer(text):
        if match.group() in components:
            words += [
                {"text": text[at : match.start()], "link": None},
                {"text": match.group(), "link": match.group()},
            ]
            at = match.end()
    return [*words, {"text": text[at:], "link": None}]
