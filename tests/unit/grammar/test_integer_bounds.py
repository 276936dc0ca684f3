"""Integers of schemas that set no bounds."""

import orjson
import pytest
from llguidance import LLMatcher, LLTokenizer

from engine.api.grammar import Grammar
from engine.grammar.integer_bounds import MAX_INTEGER, bound_integers
from engine.grammar.source import library_text, parse_source

TOKENIZER = LLTokenizer("byte")


def accepted(schema, text):
    """How many characters of a text the schema's grammar allows."""
    grammar = Grammar.json_schema(schema)
    matcher = LLMatcher(TOKENIZER, library_text(grammar, parse_source(grammar))[0])
    assert not matcher.is_error(), matcher.get_error()
    return matcher.try_consume_tokens(list(text.encode()))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": "integer", "minimum": 0},
        {"type": ["integer", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"$ref": "#/$defs/count", "$defs": {"count": {"type": "integer"}}},
    ],
)
def test_an_unbounded_integer_has_at_most_sixteen_digits(schema):
    assert accepted(schema, "1" * 40) == 16
    assert accepted(schema, str(MAX_INTEGER)) == 16


def test_integers_inside_objects_and_arrays_are_bounded():
    schema = {
        "type": "object",
        "properties": {"type": {"type": "array", "items": {"type": "integer"}}},
        "required": ["type"],
        "additionalProperties": False,
    }
    begin = '{"type": ['
    assert accepted(schema, begin + "7" * 40) == len(begin) + 16


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 10**20, "maximum": 10**21},
        {"type": "integer", "minimum": 10**20},
        {"type": "integer", "maximum": -(10**20)},
        {"allOf": [{"type": "integer"}, {"minimum": 10**20}]},
        {"type": "integer", "enum": [10**20]},
        {"const": {"type": "integer"}},
        {"enum": [{"type": "integer"}]},
        {"type": "number"},
        {"type": ["integer", "number"]},
        {"type": "integer", "minimum": "low", "maximum": True},
        True,
    ],
)
def test_what_a_schema_bounds_itself_is_left_as_it_is(schema):
    assert bound_integers(schema) == schema


def test_the_schema_itself_is_not_changed():
    schema = {"type": "array", "items": [{"type": "integer"}]}
    before = orjson.dumps(schema)
    assert bound_integers(schema) != schema
    assert orjson.dumps(schema) == before
