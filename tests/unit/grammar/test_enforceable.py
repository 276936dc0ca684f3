"""What of a schema is enforced, what is reported, and that no valid answer is lost."""

import decimal
import enum
import json
from typing import Annotated, Literal

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer

from engine.api.grammar import Grammar
from engine.grammar.enforceable import MAX_LENGTH, enforceable_schema
from engine.grammar.source import library_text, parse_source

TOKENIZER = LLTokenizer("byte")
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def accepts(schema, *texts):
    """Whether the schema's grammar accepts each text."""
    grammar = Grammar.json_schema(schema)
    start = LLMatcher(TOKENIZER, library_text(grammar, parse_source(grammar))[0], log_level=0)
    assert not start.is_error(), start.get_error()

    def is_accepted(text):
        matcher = start.deep_copy()
        return bool(matcher.consume_tokens(list(text.encode())) and matcher.is_accepting())

    return [is_accepted(text) for text in texts]


def left_out(schema):
    grammar = Grammar.json_schema(schema)
    return list(library_text(grammar, parse_source(grammar))[1])


def obj(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


ENFORCED = {
    "a decimal": (
        {"anyOf": [{"type": "number"}, TEXT | {"pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}]},
        ['"1.5"', "3", '"+.5"', '"7."', "-2.25"],
        ['""', '"."', '"-"', '"a"'],
    ),
    "a password": (
        TEXT | {"pattern": r"^(?=.*[A-Z])(?=.*\d).{3,}$"},
        ['"Aa1"'],
        ['"aa1"', '"AAA"', '"A1"'],
    ),
    "names from a list": (
        {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"enum": ["x", "y"]}},
        ['{"x": 1}', "{}", '{"y": 2}'],
        ['{"z": 1}', '{"x": "1"}'],
    ),
    "names by a pattern": (
        {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"pattern": "^[a-z]+$"}},
        ['{"x": 1}'],
        ['{"X": 1}'],
    ),
    "names that are texts": (
        {"type": "object", "additionalProperties": WHOLE, "propertyNames": TEXT},
        ['{"x": 1}'],
        ['{"x": "1"}'],
    ),
    "unevaluated properties": (
        {"type": "object", "properties": {"a": TEXT}, "unevaluatedProperties": False},
        ['{"a": "b"}'],
        ['{"c": "b"}'],
    ),
    "a property that is never there": (
        {"type": "object", "properties": {"a": {"not": {}}}, "additionalProperties": False},
        ["{}"],
        ['{"a": 1}'],
    ),
    "base64": (TEXT | {"format": "byte"}, ['"YWJj"', '"YQ=="', '""'], ['"Y"']),
    "base64url": (TEXT | {"format": "base64url"}, ['"YQ"', '"-_8="'], ['"+/8="']),
    "a UUID of a version": (
        TEXT | {"format": "uuid4"},
        ['"6b1d3a52-6a1f-4a6e-9a6b-2f1d3a526a1f"'],
        ['"6b1d3a52-6a1f-1a6e-9a6b-2f1d3a526a1f"'],
    ),
    "a format beside a pattern": (
        TEXT | {"format": "uuid4", "pattern": "^6"},
        ['"6b1d3a52-6a1f-4a6e-9a6b-2f1d3a526a1f"'],
        ['"7b1d3a52-6a1f-4a6e-9a6b-2f1d3a526a1f"'],
    ),
    "an integer of 32 bits": (
        WHOLE | {"format": "int32"}, ["2147483647", "-2147483648"], ["2147483648"],
    ),
    "an unsigned integer": (WHOLE | {"format": "uint8"}, ["0", "255"], ["256", "-1"]),
    "nullable": (
        {
            **obj(a=TEXT | {"nullable": True, "enum": ["x"]}, b={"$ref": "#/$defs/q", "nullable": True}),
            "$defs": {"q": WHOLE},
        },
        ['{"a": null, "b": 1}', '{"a": "x", "b": null}'],
        ['{"a": 1, "b": 1}'],
    ),
    "a nullable root": (
        obj(b={"$ref": "#/$defs/q"}) | {"$defs": {"q": WHOLE}, "nullable": True, "const": {"b": 1}},
        ['{"b": 1}', "null"],
        ["1"],
    ),
    "an exclusive bound of draft 4": (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9}, ["1"], ["0"],
    ),
    "branches with a tag": (
        {"oneOf": [obj(k={"const": "a"}, v=WHOLE), obj(k={"const": "b"}, w=TEXT)]},
        ['{"k": "a", "v": 1}', '{"k": "b", "w": "x"}'],
        ['{"k": "a", "w": "x"}'],
    ),
    "branches of other types": ({"oneOf": [TEXT, WHOLE]}, ['"a"', "1"], ["null"]),
    "repeated items allowed": (
        {"type": "array", "items": WHOLE, "uniqueItems": False}, ["[1, 1]"], ['["a"]'],
    ),
    "annotations": (
        TEXT | {
            "title": "a", "description": "b", "default": "c", "examples": ["d"], "deprecated": True,
            "readOnly": True, "writeOnly": True, "$comment": "e", "$anchor": "f", "x-own": 1,
            "discriminator": {"propertyName": "k"}, "$dynamicAnchor": "g",
        },
        ['"a"'],
        ["1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENFORCED)
def test_what_can_be_said_exactly_is_enforced_without_a_note(name):
    schema, good, bad = ENFORCED[name]
    assert left_out(schema) == []
    assert accepts(schema, *good) == [True] * len(good)
    assert accepts(schema, *bad) == [False] * len(bad)


NOTED = {
    "a set": ({"type": "array", "items": WHOLE, "uniqueItems": True}, ["uniqueItems"], "[1]", "{}"),
    "a set of listed values": (
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        ["uniqueItems"], '["b", "a"]', '["a", "b", "a"]',
    ),
    "branches that overlap": (
        {"oneOf": [obj(a=TEXT), {"type": "object", "additionalProperties": TEXT}]},
        ["oneOf"], '{"a": "x"}', "1",
    ),
    "numbers and integers": ({"oneOf": [{"type": "number"}, WHOLE]}, ["oneOf"], "1.5", "null"),
    "bytes": (TEXT | {"format": "binary"}, ["format:binary"], '"a"', "1"),
    "a format that nobody knows": (TEXT | {"format": "shoe size"}, ["format:shoe size"], '"a"', "1"),
    "a format of a number": ({"type": "number", "format": "double"}, ["format:double"], "1.5", "null"),
    "an encoding": (
        TEXT | {"contentEncoding": "base64", "contentMediaType": "image/png"},
        ["contentEncoding", "contentMediaType"], '"a"', "1",
    ),
    "a negation": (WHOLE | {"not": {"const": 3}}, ["not"], "4", "null"),
    "a condition": (
        {"type": "string", "if": {"minLength": 1}, "then": {"minLength": 3}, "else": {}},
        ["else", "if", "then"], '"abc"', "1",
    ),
    "an array that contains": (
        {"type": "array", "items": WHOLE, "contains": {"const": 1}}, ["contains"], "[1]", "[]",
    ),
    "a number of properties": (
        {"type": "object", "properties": {"a": TEXT}, "minProperties": 1, "additionalProperties": False},
        ["minProperties"], '{"a": "x"}', '{"b": 1}',
    ),
    "names by a format": (
        {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"format": "uuid"}},
        ["propertyNames"], '{"a": 1}', '{"a": "b"}',
    ),
    "dependent properties": (
        obj(a=TEXT) | {"dependentRequired": {"a": ["b"]}}, ["dependentRequired"], '{"a": "b"}', "{}",
    ),
    "look-ahead": (TEXT | {"pattern": "^(?!foo)[a-z]+$"}, ["pattern"], '"bar"', '"1"'),
    "a back-reference": (TEXT | {"pattern": r"^(a)\1$"}, ["pattern"], '"aa"', "1"),
    "names by look-ahead": (
        {"type": "object", "patternProperties": {"^(?!x)": TEXT}, "additionalProperties": False},
        ["patternProperties"], '{"y": "a"}', "1",
    ),
    "a dynamic reference": (obj(a={"$dynamicRef": "#x"}), ["$dynamicRef"], '{"a": 1}', "{}"),
    "inside a definition": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": WHOLE, "uniqueItems": True}}},
        ["uniqueItems"], "[1]", "{}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTED)
def test_what_cannot_be_enforced_is_left_out_and_named(name):
    schema, names, good, bad = NOTED[name]
    assert left_out(schema) == names
    assert accepts(schema, good, bad) == [True, False]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Record(pydantic.BaseModel):
    price: decimal.Decimal
    numbers: set[int]
    colours: frozenset[Colour]
    picture: bytes
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    counts: dict[Literal["a", "b"], int]


def test_a_model_of_pydantic_with_sets_bytes_and_decimals():
    schema = Record.model_json_schema()
    assert left_out(schema) == ["format:binary", "uniqueItems"]
    record = {
        "price": "1.50", "numbers": [1, 2], "colours": ["red"], "picture": "x",
        "pet": {"kind": "cat", "lives": 9}, "counts": {"a": 1},
    }  # fmt: skip
    three = record | {"colours": ["red", "blue", "red"]}
    wrong = record | {"pet": {"kind": "cat"}}
    assert accepts(schema, *map(json.dumps, (record, three, wrong))) == [True, False, False]


VALUES = [
    None, True, 0, 1, 3, -7, 1.5, 2**31, "", "a", "bar", "foo", "Aa1", "YQ==", [], [1], [1, 1], ["a", "b"],
    {}, {"a": "x"}, {"a": 1}, {"b": "x"}, {"a": "x", "b": "x"}, {"k": "a", "v": 1}, {"x": 1}, {"y": "a"},
]  # fmt: skip


ALL = {name: case[0] for name, case in (ENFORCED | NOTED).items()}
OTHER_MEANINGS = ("format", "nullable", "exclusiveMinimum", "$dynamicRef")
"""Keywords that the validator does not have, or does not assert."""


@pytest.mark.parametrize(
    "name",
    [name for name in ALL if not any(one in json.dumps(ALL[name]) for one in OTHER_MEANINGS)],
)
def test_every_value_that_the_schema_allows_stays_valid(name):
    schema = ALL[name]
    rewritten, _ = enforceable_schema(schema)
    for value in VALUES:
        if jsonschema.Draft202012Validator(schema).is_valid(value):
            assert jsonschema.Draft202012Validator(rewritten).is_valid(value), value


KEYWORDS = st.sampled_from(
    [
        "type", "enum", "const", "format", "pattern", "items", "prefixItems", "properties", "required",
        "anyOf", "oneOf", "allOf", "not", "propertyNames", "additionalProperties", "patternProperties",
        "minProperties", "uniqueItems", "maxItems", "minItems", "contains", "minContains", "nullable",
        "exclusiveMinimum", "minimum", "unevaluatedProperties", "unevaluatedItems", "$ref", "$defs",
        "string", "uuid4", "#/$defs/a",
    ]
)  # fmt: skip


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | KEYWORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
        max_leaves=25,
    )
)
def test_no_json_makes_the_rewriting_fail(schema):
    rewritten, names = enforceable_schema(schema)
    json.dumps(rewritten)
    assert all(isinstance(name, str) for name in names)


def test_a_length_that_takes_too_many_states_is_left_out():
    schema = {"type": "string", "minLength": MAX_LENGTH + 1, "maxLength": 65536}
    assert enforceable_schema(schema) == ({"type": "string"}, ("maxLength", "minLength"))
    exact = {"type": "string", "maxLength": MAX_LENGTH}
    assert enforceable_schema(exact) == (exact, ())
