"""Random requests of every operation in the OpenAPI document: none may be a 5xx, all answers as described.

Requests are drawn from the document, valid and invalid ones. In half of them the names of things (models,
files, conversations, …) are those that there are, because a random one is only ever a 404, and the body is
the smallest valid one with some random members, because a body of random members alone is a 400.
"""

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, strategies
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.server.app import all_routes
from app.server.openapi.operations import operations
from tests.server.files_server import files_server
from tests.server.test_nested_members import SAMPLES

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
EXCLUDED = {
    "/api/pull": "asks a hub",
    "/api/delete": "removes models of this machine",
    "/v1/models/{name}/load": "the other tests need the model",
    "/v1/models/{name}/unload": "the other tests need the model",
    "/v1/models/{name}/reload": "the other tests need the model",
}
"""Paths that are not called, and why."""
INPUT = {"input": "hi"}
SHORT = {
    "CompactRequest": INPUT,
    "InputTokensRequest": INPUT,
    "ResponseRequest": INPUT | {"max_output_tokens": 4},
    "MessagesRequest": {"max_tokens": 4},
}
"""What the sample of a body lacks to be answered soon, by the class of the body."""
CONTEXT = 96
"""Of the model, so that the answers without a limit are short."""


def operations_of_the_server():
    return [one for one in operations(all_routes()) if one.path not in EXCLUDED]


OPERATIONS = operations_of_the_server()


def is_constrained(operation):
    """Whether a request can be invalid: whatever is in a path is a name."""
    return operation.body is not None or any(operation.route.dependant.query_params)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with files_server(folder, engine_options={"context": CONTEXT}) as server:
        yield server


@pytest.fixture(scope="module")
def schema(running):
    return schemathesis.openapi.from_dict(running.http.get("/openapi.json").json())


@pytest.fixture(scope="module")
def names(running):
    """Parameters of paths, with the names of things that there are."""
    store = running.store_with({"a.txt": b"The toner is in the drawer."}, name="a")
    (file,) = running.api.vector_stores.files.list(store.id).data
    batch = running.api.vector_stores.file_batches.create(store.id, file_ids=[file.id])
    response = running.api.responses.create(model="toy", input="hi", max_output_tokens=1)
    message = {"type": "message", "role": "user", "content": "hi"}
    conversation = running.api.conversations.create(items=[message])
    (item,) = running.api.conversations.items.list(conversation.id).data
    upload = running.api.uploads.create(
        bytes=1, filename="a.txt", mime_type="text/plain", purpose="assistants"
    )
    return {
        "name": "toy",
        "store_id": store.id,
        "file_id": file.id,
        "batch_id": batch.id,
        "response_id": response.id,
        "conversation_id": conversation.id,
        "item_id": item.id,
        "upload_id": upload.id,
        "block": 1,
    }


@pytest.fixture(scope="module")
def session():
    with requests.Session() as one:
        yield one


def with_real_names(case, operation, names, some):
    """Put names of things that there are into a case, and random members into a valid body."""
    known = case.path_parameters.keys() & names
    case.path_parameters.update({name: names[name] for name in known})
    if operation.body_class is not None and isinstance(case.body, dict):
        name = operation.body_class.__name__
        sample = SAMPLES[name] | SHORT.get(name, {})
        extra = {name: case.body[name] for name in list(case.body)[:some] if name not in sample}
        case.body = sample | extra


def check(schema, names, session, url, operation, mode, *, examples):
    @hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(
        case=schema[operation.path][operation.method].as_strategy(generation_mode=mode),
        is_real=strategies.booleans(),
        some=strategies.integers(0, 3),
    )
    def conforms(case, is_real, some):
        if is_real and operation.method != "DELETE" and mode is GenerationMode.POSITIVE:
            with_real_names(case, operation, names, some)
        response = case.call(base_url=url, session=session, timeout=120)
        case.validate_response(response, checks=CHECKS)

    conforms()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_answers_to_valid_requests_are_as_described(running, schema, names, session, operation):
    examples = 6 if operation.body else 2
    check(
        schema, names, session, running.server.url, operation, GenerationMode.POSITIVE,
        examples=examples,
    )  # fmt: skip


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if is_constrained(one)],
    ids=lambda one: f"{one.method} {one.path}",
)
def test_answers_to_invalid_requests_are_as_described(running, schema, names, session, operation):
    check(
        schema, names, session, running.server.url, operation, GenerationMode.NEGATIVE, examples=2
    )
