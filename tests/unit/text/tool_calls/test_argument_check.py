"""Arguments are checked as the standard says, and no schema costs more than a bound."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from engine.text.tool_calls import argument_check
from engine.text.tool_calls.argument_check import MAX_STEPS, Uncheckable, check_arguments

EVIL = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}


def test_a_pattern_is_checked_in_linear_time():
    check_arguments(EVIL, {"a": "a" * 5_000})
    with pytest.raises(ValueError, match="does not match"):
        check_arguments(EVIL, {"a": "a" * 5_000 + "!"})


@pytest.mark.parametrize(
    ("schema", "arguments", "message"),
    [
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, "a: 'x' is not of type 'integer'"),
        ({"required": ["a"]}, {}, "'a' is a required property"),
        ({"additionalProperties": False}, {"b": 1}, "there is no argument 'b'"),
        ({"additionalProperties": {"type": "string"}}, {"b": 1}, "not of type 'string'"),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"xy": 1}, "not of type 'string'"),
        ({"$ref": "http://127.0.0.1:9/schema"}, {}, "leads nowhere"),
        ({"$ref": "file:///etc/passwd"}, {}, "leads nowhere"),
        ({"$ref": "#"}, {}, "recursive without an end"),
        ({}, {"a": json.loads("[" * 60 + "]" * 60)}, "nest too deep"),
    ],
)
def test_arguments_that_do_not_match_are_refused(schema, arguments, message):
    with pytest.raises(ValueError, match=message):
        check_arguments({"type": "object", **schema}, arguments)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {"anything": [1, None]}),
        (
            {"properties": {"a": {"pattern": "(?=x)x"}}},
            {"a": "y"},
        ),  # unknown to the engine: left to the server
        ({"additionalProperties": False, "patternProperties": {"^x": {}}}, {"xy": 1}),
        (
            {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "null"}}},
            {"a": None},
        ),
    ],
)
def test_arguments_that_match_pass(schema, arguments):
    check_arguments({"type": "object", **schema}, arguments)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 0.5])
    | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)
KINDS = ("string", "integer", "number", "boolean", "null", "object", "array")
LEAVES = st.one_of(
    st.booleans(),
    st.sampled_from(KINDS).map(lambda kind: {"type": kind}),
    st.lists(JSON, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    JSON.map(lambda value: {"const": value}),
    st.integers(0, 2).map(
        lambda count: {"minLength": count, "maxItems": count, "minProperties": count}
    ),
    st.sampled_from(["^a", "b$", "^[ab]*$"]).map(lambda pattern: {"pattern": pattern}),
    st.booleans().map(lambda unique: {"uniqueItems": unique}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(
            lambda one: {"properties": one}
        ),
        inner.map(lambda one: {"items": one}),
        inner.map(lambda one: {"additionalProperties": one, "patternProperties": {"^a": True}}),
        inner.map(lambda one: {"not": one}),
        st.lists(inner, min_size=1, max_size=2).map(lambda many: {"anyOf": many}),
        st.lists(inner, min_size=1, max_size=2).map(lambda many: {"oneOf": many}),
        st.lists(inner, min_size=1, max_size=2).map(lambda many: {"allOf": many}),
    ),
    max_leaves=5,
)


@given(SCHEMAS, st.dictionaries(st.sampled_from("ab"), JSON, max_size=2))
def test_the_verdict_is_that_of_the_standard(schema, arguments):
    schema = {"allOf": [schema]}
    try:
        check_arguments(schema, arguments)
        verdict = True
    except Uncheckable:
        verdict = None
    except ValueError:
        verdict = False
    assert verdict is Draft202012Validator(schema).is_valid(arguments)


@given(JSON, st.dictionaries(st.sampled_from("ab"), JSON, max_size=2))
def test_what_is_no_schema_is_said_to_be_none(schema, arguments):
    try:
        check_arguments({"properties": schema, "required": schema, "type": schema}, arguments)
    except ValueError:
        pass  # of either kind; nothing else is raised


def doubling(levels):
    """A schema of a few lines that asks for 2 ** levels checks."""
    level = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": level | {f"a{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (doubling(35), {}),
        ({"items": {}, "properties": {"a": {"items": {"anyOf": [{"const": n} for n in range(2000)]}}}},
         {"a": [1999] * 1000}),
        ({"properties": {"a": {"items": {"enum": list(range(5000))}}}}, {"a": [4999] * 5000}),
        ({"patternProperties": {f"{n}": {} for n in range(1000)}}, {f"x{n}": 0 for n in range(1000)}),
    ],
)  # fmt: skip
def test_a_costly_schema_is_given_up(schema, arguments):
    with pytest.raises(Uncheckable, match="costs too much"):
        check_arguments(schema, arguments)


DIALECTS = [
    "http://json-schema.org/draft-03/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
    "https://example.org/unknown",
    ["no", "text"],
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("reached", ["nested", "reference", "condition"])
def test_a_part_with_a_dialect_of_its_own_is_counted_too(monkeypatch, dialect, reached):
    monkeypatch.setattr(argument_check, "MAX_STEPS", 100)
    many = {"items": {"enum": list(range(20))}}
    schema = {
        "nested": {"properties": {"a": {"$schema": dialect, **many}}},
        # The top of the schema, entered for the second time, with the list as its `b`.
        "reference": {
            "$schema": dialect,
            "properties": {"a": {"properties": {"b": {"$ref": "#"}}}},
            **many,
        },
        "condition": {"properties": {"a": {"if": {"$schema": dialect, **many}}}},
    }[reached]
    values = [19] * 20
    with pytest.raises(Uncheckable, match="costs too much"):
        check_arguments(schema, {"a": {"b": values} if reached == "reference" else values})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_part_with_a_dialect_of_its_own_has_the_same_patterns(dialect):
    part = {"$schema": dialect, "pattern": "^(?=x)"}  # unknown to the engine: taken for matched
    check_arguments({"properties": {"a": part}}, {"a": "y"})
    check_arguments({"$schema": dialect, "properties": {"a": {"$ref": "#"}}, **part}, {"a": {}})
    below = {"$schema": dialect, "properties": {"a": {"$ref": "#"}}, "pattern": "^(?=x)"}
    check_arguments(below, {"a": "y"})


def test_a_value_called_schema_is_compared_as_it_is():
    schema = {"properties": {"a": {"const": {"$schema": "x"}}}}
    check_arguments(schema, {"a": {"$schema": "x"}})
    with pytest.raises(ValueError, match="was expected"):
        check_arguments(schema, {"a": {}})


def test_patterns_that_the_library_would_match_itself_are_not_checked():
    one = {"patternProperties": {"^x": {}}}
    with pytest.raises(Uncheckable, match="unevaluatedProperties is not checked"):
        check_arguments({"allOf": [one], "unevaluatedProperties": False}, {"xy": 1})
    closed = {"allOf": [{"properties": {"xy": {}}}], "unevaluatedProperties": False}
    check_arguments(closed, {"xy": 1})
    with pytest.raises(ValueError, match="'z' was unexpected"):
        check_arguments(closed, {"z": 1})


def test_the_schemas_that_unevaluated_properties_enter_are_counted(monkeypatch):
    parts = {f"a{n}": {"$ref": "#/$defs/any"} for n in range(100)}
    schema = {"unevaluatedProperties": True, "dependentSchemas": parts, "$defs": {"any": {}}}
    arguments = dict.fromkeys(parts, 0)
    monkeypatch.setattr(argument_check, "MAX_STEPS", 350)  # without them, 302 are counted
    with pytest.raises(Uncheckable, match="costs too much"):
        check_arguments(schema, arguments)


def test_the_bound_is_for_each_check():
    for _ in range(3):
        check_arguments(
            {"properties": {"a": {"items": {"type": "integer"}}}}, {"a": [1] * (MAX_STEPS // 3)}
        )


def test_a_thousand_equal_objects_are_compared_once_each():
    items = [{"n": [n]} for n in range(1000)]
    check_arguments({"properties": {"a": {"uniqueItems": True}}}, {"a": items})
    with pytest.raises(ValueError, match="equal items"):
        check_arguments({"properties": {"a": {"uniqueItems": True}}}, {"a": [*items, {"n": [0]}]})
