"""The grammar of calls: what it allows is what the parser of the form reads."""

import json

import pytest

from engine.api.tools import Tool, ToolChoice
from engine.grammar.call_grammar import call_grammar
from engine.grammar.compiler import GrammarCompiler
from engine.text.tool_calls.choosing import FORMS, new_parser
from tests.fakes.parsed_answer import TOOLS, parts_of, read_parts, values_of
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer
from tests.unit.text.tool_calls.test_answers import PARIS, SEARCH, TIME

ALL = list(TOOLS.values())
TOKENIZER = byte_tokenizer()
REQUIRED = ToolChoice("required")


@pytest.fixture(scope="module")
def compiler():
    compiler = GrammarCompiler(TOKENIZER, VOCAB_SIZE)
    yield compiler
    compiler.close()


def accepts(compiler, form, text, choice=REQUIRED, tools=ALL):
    grammar = call_grammar(FORMS[form], tools, choice, TOKENIZER.control_tokens)
    matcher = compiler.build(grammar).result(30).matcher()
    return matcher.consume(TOKENIZER.encode(text, special=True)) and matcher.accepting


def call(form, name, arguments):
    """A call as the grammar of a form writes it."""
    head = FORMS[form].head.replace("NAME", name)
    return head + arguments + FORMS[form].tail


ARGUMENTS = {
    "json": '{"city": "Paris"}',
    "xml": "<parameter=city>\nParis\n</parameter>\n",
    "keyed": "\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>",
    "python": 'city="Paris"',
    "quoted": "{city:QUOTEParisQUOTE}",
}
NOTHING = {"json": "{}", "xml": "", "keyed": "", "python": "", "quoted": "{}"}
SEARCHED = {
    "json": '{"query": "a \\"b\\"\\n</c>", "limit": 3, "deep": true, "paths": ["x"]}',
    "xml": '<parameter=query>\na "b"\n</c>\n</parameter>\n<parameter=limit>\n3\n</parameter>\n'
    '<parameter=deep>\ntrue\n</parameter>\n<parameter=paths>\n["x"]\n</parameter>\n',
    "keyed": '\n<arg_key>query</arg_key>\n<arg_value>a "b"\n</c></arg_value>\n<arg_key>limit</arg_key>\n'
    "<arg_value>3</arg_value>\n<arg_key>deep</arg_key>\n<arg_value>true</arg_value>\n"
    '<arg_key>paths</arg_key>\n<arg_value>["x"]</arg_value>',
    "python": 'query="a \\"b\\"\\n</c>", limit=3, deep=true, paths=["x"]',
    "quoted": '{query:QUOTEa "b"\n</c>QUOTE,limit:3,deep:true,paths:["x"]}',
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_what_the_grammar_allows_the_parser_reads(compiler, form):
    one = FORMS[form]
    calls = [
        call(form, name, texts[one.arguments].replace("QUOTE", one.quote))
        for name, texts in (
            ("get_weather", ARGUMENTS),
            ("get_time", NOTHING),
            ("search-files", SEARCHED),
        )
    ]
    expected = [PARIS, TIME, SEARCH]
    for written, value in zip(calls, expected, strict=True):
        text = written + one.closing
        assert accepts(compiler, form, text)
        assert read(one, text) == [value]
    together = one.separator.join(calls) + one.closing
    assert accepts(compiler, form, together) is not one.is_single
    assert not accepts(compiler, form, together, ToolChoice("required", parallel=False))
    if not one.is_single:
        assert read(one, together) == expected


def read(form, text):
    parser = new_parser(form, TOOLS, parallel=True)
    return values_of(read_parts(parts_of(parser, [form.opening, text])))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_only_tools_that_may_be_called_are_allowed(compiler, form):
    one = FORMS[form]
    named = ToolChoice("required", frozenset({"get_time"}))
    time = call(form, "get_time", NOTHING[one.arguments]) + one.closing
    weather = call(form, "get_weather", ARGUMENTS[one.arguments].replace("QUOTE", one.quote))
    assert accepts(compiler, form, time, named)
    assert not accepts(compiler, form, weather + one.closing, named)
    assert not accepts(
        compiler, form, call(form, "get_weather", NOTHING[one.arguments]) + one.closing
    )


def test_arguments_follow_the_schema(compiler):
    def json_call(arguments):
        return call("hermes", "get_weather", json.dumps(arguments)) + "\n</tool_call>"

    assert accepts(compiler, "hermes", json_call({"city": "Rome"}))
    assert not accepts(compiler, "hermes", json_call({"city": 3}))
    assert not accepts(compiler, "hermes", json_call({"city": "Rome", "unit": "C"}))


@pytest.mark.parametrize("form", ["qwen-xml", "gemma4", "llama-python"])
def test_texts_of_a_list_are_allowed_only(compiler, form):
    unit = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
    }
    tools = [Tool("get_weather", "", unit)]
    one = FORMS[form]
    paris = call(form, "get_weather", ARGUMENTS[one.arguments].replace("QUOTE", one.quote))
    assert accepts(compiler, form, paris + one.closing, tools=tools)
    assert not accepts(compiler, form, paris.replace("Paris", "Oslo") + one.closing, tools=tools)


def test_marks_that_are_control_tokens_are_those_tokens(compiler):
    grammar = call_grammar(
        FORMS["mistral-args"], ALL, ToolChoice("required"), TOKENIZER.control_tokens
    )
    assert "<[" not in grammar.source
    controls = type(TOKENIZER.control_tokens)({"[TOOL_CALLS]": 5, "[ARGS]": 257})
    grammar = call_grammar(FORMS["mistral-args"], ALL, ToolChoice("required"), controls)
    matcher = compiler.build(grammar).result(30).matcher()
    assert matcher.consume([*b"get_time", 257, *b"{}"])
    assert matcher.accepting
    matcher = compiler.build(grammar).result(30).matcher()
    assert not matcher.consume(list(b"get_time[ARGS]{}"))


def test_ids_beyond_the_tokens_of_the_checking_process_are_allowed():
    controls = type(TOKENIZER.control_tokens)({"[ARGS]": 200_000})
    grammar = call_grammar(FORMS["mistral-args"], ALL, ToolChoice("required"), controls)
    compiler = GrammarCompiler(TOKENIZER, 200_001)  # rows without a token
    with pytest.raises(Exception, match="token"):  # of this vocabulary, not of the check
        compiler.build(grammar).result(30)
    compiler.close()
