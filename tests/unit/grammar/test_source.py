"""Validation of grammars before they are built."""

import orjson
import pytest

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.grammar.limits import MAX_CHOICES, MAX_JSON_DEPTH, MAX_SOURCE_CHARS
from engine.grammar.source import one_sentence, parse_source


def nested(depth):
    return '{"items":' * depth + "{}" + "}" * depth


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        (Grammar("yaml"), "Expected a grammar"),
        ("{}", "Expected a grammar"),
        (Grammar.regex("a" * (MAX_SOURCE_CHARS + 1)), "characters"),
        (Grammar.regex(""), "empty"),
        (Grammar.lark("  \n"), "empty"),
        (Grammar("json_object", "{}"), "takes no source"),
        (Grammar.json_schema("{"), "not valid JSON"),
        (Grammar.json_schema("3"), "must be an object"),
        (Grammar.json_schema("false"), "no JSON satisfies"),
        (Grammar.json_schema(nested(MAX_JSON_DEPTH + 1)), "deep"),
        (Grammar.json_schema("[" * 5000 + "]" * 5000), "not valid JSON"),
        (Grammar("choice", "{}"), "at least one"),
        (Grammar.choice([]), "at least one"),
        (Grammar.choice(["a", ""]), "non-empty"),
        (Grammar("choice", "[1]"), "must be a non-empty string"),
        (Grammar.choice(map(str, range(MAX_CHOICES + 1))), "the maximum is"),
        (Grammar.json_schema('{"const": "\ud800"}'), "not valid JSON"),
    ],
)
def test_an_invalid_grammar_is_rejected_in_a_sentence(grammar, reason):
    with pytest.raises(InvalidRequest) as refused:
        parse_source(grammar)
    message = str(refused.value)
    assert reason in message
    assert message.endswith(".")
    assert "\n" not in message
    assert refused.value.param == "grammar"


def test_grammars_at_the_limits_are_valid():
    parse_source(Grammar.regex("a" * MAX_SOURCE_CHARS))
    parse_source(Grammar.json_schema(nested(MAX_JSON_DEPTH)))
    parse_source(Grammar.choice(map(str, range(MAX_CHOICES))))
    parse_source(Grammar.json_schema("true"))
    parse_source(Grammar.json_object())


def test_a_schema_that_cannot_be_written_as_json_is_rejected_at_construction():
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        Grammar.json_schema({"const": object()})


def test_a_schema_keeps_the_order_of_its_properties():
    schema = {"properties": {name: {} for name in "zayb"}}
    assert list(orjson.loads(Grammar.json_schema(schema).source)["properties"]) == list("zayb")


def test_the_librarys_messages_become_one_line():
    assert one_sentence("at 1(8): invalid regex:\n  (\n  ^\nerror: unclosed group\n  1 | x") == (
        "unclosed group"
    )
    assert one_sentence("a\nb <non-verbose/>\n") == "a b"
    assert len(one_sentence("x" * 5000)) == 300
