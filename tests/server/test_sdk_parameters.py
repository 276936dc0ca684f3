"""Every parameter of the official clients' methods has a row in the table of its endpoint.

`scripts/sdk_parameters.py` writes the parameters; the packages are not needed here.
"""

import json
from pathlib import Path

import pytest

from app.server.app import all_routes
from app.server.openapi.operations import operations
from app.server.openapi.schemas import body_classes
from app.server.wire.forms import FileForm

SDKS = json.loads(Path(__file__).with_name("sdk_parameters.json").read_text())
OPERATIONS = {f"{one.method} {one.path}": one for one in operations(all_routes())}
OBJECTS = {one.__name__: one for one in body_classes()}

OWN_NAMES = {
    "vector_store_id": "store_id",
    "model_id": "name",
    "model": "name",
}
"""The names of parameters of paths, where they differ from the clients'."""


def rows(kind):
    """The names in the table of a body or form."""
    names = {field.alias or name for name, field in kind.model_fields.items()}
    if kind is FileForm:  # the client flattens objects in a form
        return {name.partition("[")[0] for name in names}
    return names | set(getattr(kind, "without_effect", ())) | set(getattr(kind, "unsupported", ()))


def known(operation):
    found = {field.alias.removesuffix("[]") for field in operation.route.dependant.query_params}
    found |= {field.alias for field in operation.route.dependant.path_params}
    return found | (rows(operation.body.kind) if operation.body else set())


def cases(part):
    return [
        pytest.param(one, id=f"{sdk} {sdks['version']} {name}")
        for sdk, sdks in SDKS.items()
        for name, one in sdks[part].items()
    ]


@pytest.mark.parametrize("method", cases("methods"))
def test_every_parameter_of_a_method_has_a_row(method):
    found = known(OPERATIONS[method["endpoint"]])
    given = method["parameters"]
    assert [one for one in given if one not in found and OWN_NAMES.get(one) not in found] == []


@pytest.mark.parametrize("sent", cases("objects"))
def test_every_member_of_an_object_has_a_row(sent):
    found = rows(OBJECTS[sent["body"]])
    assert [one for one in sent["members"] if one not in found] == []
