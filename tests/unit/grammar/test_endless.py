import pytest

from engine.grammar.endless import is_endless


def tree(**child):
    return {"type": "object", "properties": {"x": {"$ref": "#"} | child}, "required": ["x"]}


OPTIONAL = {"type": "object", "properties": {"x": {"$ref": "#"}}}
LIST = {"type": "object", "properties": {"x": {"type": "array", "items": {"$ref": "#"}}}}


@pytest.mark.parametrize(
    "schema",
    [
        tree(),
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"$ref": "#"}, {"type": "string"}]},
        {"anyOf": [{"$ref": "#"}, tree()]},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 1},
        {
            "$defs": {"a": tree() | {"properties": {"x": {"$ref": "#/$defs/a"}}}},
            "$ref": "#/$defs/a",
        },
    ],
)
def test_a_schema_whose_values_never_end(schema):
    assert is_endless(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "string"},
        OPTIONAL,
        LIST | {"required": ["x"]},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"type": ["object", "null"], "properties": {"x": {"$ref": "#"}}, "required": ["x"]},
        {"type": "array", "items": {"$ref": "#"}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        {"enum": [1], "$ref": "#"},
        {"$ref": "#/nowhere"},
        {"type": 5, "required": "x", "anyOf": 3, "minItems": "a"},
    ],
)
def test_a_schema_that_has_values(schema):
    assert not is_endless(schema)
