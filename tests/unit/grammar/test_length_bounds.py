"""Arrays of schemas that set no limits."""

import pytest

from engine.grammar.length_bounds import MAX_ITEMS, bound_lengths


def test_arrays_get_a_limit_wherever_they_are():
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "array", "items": {"type": "array"}},
            "note": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        },
        "$defs": {"x": {"type": ["array", "null"]}},
    }
    bounded = bound_lengths(schema)
    array = {"type": "array", "maxItems": MAX_ITEMS}
    assert bounded["properties"]["type"] == array | {"items": array}
    assert bounded["properties"]["note"]["anyOf"] == [array, {"type": "null"}]
    assert bounded["$defs"]["x"]["maxItems"] == MAX_ITEMS


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "integer"},
        {"type": "string"},
        {"type": "array", "maxItems": 3},
        {"type": "array", "enum": [[]]},
        {"type": "array", "allOf": [{"minItems": 3}]},
        {"allOf": [{"type": "array"}]},
    ],
)
def test_what_has_a_limit_is_left_as_it_is(schema):
    assert bound_lengths(schema) == schema


def test_a_limit_is_no_less_than_what_is_demanded():
    least = MAX_ITEMS + 5
    assert bound_lengths({"type": "array", "minItems": least})["maxItems"] == least
