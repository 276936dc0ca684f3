"""What is refused before anything is built."""

import orjson
import pytest

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.grammar.limits import MAX_CHOICES, MAX_JSON_DEPTH, MAX_SOURCE_CHARS
from engine.grammar.source import check_shape, one_sentence


def nested(depth):
    return '{"items":' * depth + "{}" + "}" * depth


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        (Grammar("yaml"), "No grammar is written"),
        ("{}", "No grammar is written"),
        (Grammar.regex("a" * (MAX_SOURCE_CHARS + 1)), "characters"),
        (Grammar.regex(""), "empty"),
        (Grammar.lark("  \n"), "empty"),
        (Grammar("json_object", "{}"), "takes no source"),
        (Grammar.json_schema("{"), "no JSON"),
        (Grammar.json_schema("3"), "must be an object"),
        (Grammar.json_schema("false"), "no JSON satisfies"),
        (Grammar.json_schema(nested(MAX_JSON_DEPTH + 1)), "deep"),
        (Grammar.json_schema("[" * 5000 + "]" * 5000), "no JSON"),
        (Grammar("choice", "{}"), "at least one"),
        (Grammar.choice([]), "at least one"),
        (Grammar.choice(["a", ""]), "not empty"),
        (Grammar("choice", "[1]"), "must be a text"),
        (Grammar.choice(map(str, range(MAX_CHOICES + 1))), "is the most"),
        (Grammar.json_schema('{"const": "\ud800"}'), "no JSON"),
    ],
)
def test_what_is_no_grammar_is_refused_in_a_sentence(grammar, reason):
    with pytest.raises(InvalidRequest) as refused:
        check_shape(grammar)
    message = str(refused.value)
    assert reason in message
    assert message.endswith(".")
    assert "\n" not in message
    assert refused.value.param == "grammar"


def test_the_largest_of_everything_passes():
    check_shape(Grammar.regex("a" * MAX_SOURCE_CHARS))
    check_shape(Grammar.json_schema(nested(MAX_JSON_DEPTH)))
    check_shape(Grammar.choice(map(str, range(MAX_CHOICES))))
    check_shape(Grammar.json_schema("true"))
    check_shape(Grammar.json_object())


def test_what_is_no_json_at_all_is_refused_where_it_is_given():
    with pytest.raises(InvalidRequest, match="no JSON"):
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
