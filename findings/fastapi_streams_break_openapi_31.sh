#!/usr/bin/env bash
# fastapi 0.165.0: one operation that streams makes the application's OpenAPI 3.1.0 document invalid.
#
# A path operation that yields its items, as JSON Lines or as server-sent events, is described by `itemSchema`. OpenAPI
# has this member since 3.2.0; the document says 3.1.0, which allows no unknown member of a media type. Seen:
# openapi-spec-validator 0.9.0 refuses the document with such an operation, and accepts it without the operation or
# with `openapi_version` set to "3.2.0".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet fastapi==0.165.0 openapi-spec-validator==0.9.0
"$folder/venv/bin/python" - <<'PYTHON'
from collections.abc import AsyncIterable

from fastapi import FastAPI
from fastapi.sse import EventSourceResponse
from openapi_spec_validator import OpenAPIV31SpecValidator, OpenAPIV32SpecValidator
from pydantic import BaseModel


class Item(BaseModel):
    name: str


async def whole() -> list[Item]:
    return [Item(name="a")]


async def streamed() -> AsyncIterable[Item]:
    yield Item(name="a")


validators = {"3.1.0": OpenAPIV31SpecValidator, "3.2.0": OpenAPIV32SpecValidator}
seen = {}
for kind, operation, options in (
    ("whole", whole, {}),
    ("lines", streamed, {}),
    ("events", streamed, {"response_class": EventSourceResponse}),
):
    for version in (None, "3.2.0"):
        application = FastAPI()
        if version is not None:
            application.openapi_version = version
        application.get("/items", **options)(operation)
        document = application.openapi()
        errors = [one.message for one in validators[document["openapi"]](document).iter_errors()]
        seen[kind, document["openapi"]] = not errors
        print(kind, document["openapi"], errors or "valid")
assert seen == {
    ("whole", "3.1.0"): True,
    ("lines", "3.1.0"): False,
    ("events", "3.1.0"): False,
    ("whole", "3.2.0"): True,
    ("lines", "3.2.0"): True,
    ("events", "3.2.0"): True,
}, "the behaviour has changed"
PYTHON
