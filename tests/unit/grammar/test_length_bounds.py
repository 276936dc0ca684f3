"""Strings and arrays of schemas that set no limits."""

import pytest

from engine.grammar.length_bounds import MAX_ITEMS, MAX_STRING, bound_lengths

BOUNDED_STRING = {"type": "string", "maxLength": MAX_STRING}


def test_strings_and_arrays_get_a_limit_wherever_they_are():
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "array", "items": {"type": "string"}},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "$defs": {"x": {"type": ["string", "null"]}},
    }
    bounded = bound_lengths(schema)
    items = {"type": "array", "items": BOUNDED_STRING, "maxItems": MAX_ITEMS}
    assert bounded["properties"]["type"] == items
    assert bounded["properties"]["note"]["anyOf"] == [BOUNDED_STRING, {"type": "null"}]
    assert bounded["$defs"]["x"]["maxLength"] == MAX_STRING


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "integer"},
        {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": "^a$"},
        {"type": "string", "format": "date"},
        {"type": "string", "enum": ["a"]},
        {"type": "array", "maxItems": 3},
        {"type": "string", "allOf": [{"minLength": 3}]},
        {"allOf": [{"type": "string"}]},
    ],
)
def test_what_has_a_limit_is_left_as_it_is(schema):
    assert bound_lengths(schema) == schema


def test_a_limit_is_no_less_than_what_is_demanded():
    least = MAX_ITEMS + 5
    assert bound_lengths({"type": "array", "minItems": least})["maxItems"] == least
