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
    "python": 'city="Paris"',
    "quoted": "{city:QUOTEParisQUOTE}",
}
NOTHING = {"json": "{}", "tagged": "", "python": "", "quoted": "{}"}
SEARCHED = {
    "json": '{"query": "a \\"b\\"\\n</c>", "limit": 3, "deep": true, "paths": ["x"]}',
    "python": 'query="a \\"b\\"\\n</c>", limit=3, deep=true, paths=["x"]',
    "quoted": '{query:QUOTEa "b"\n</c>QUOTE,limit:3,deep:true,paths:["x"]}',
}


def tagged(form, **arguments):
    """Arguments in the tags of a form."""
    begin, end = form.tags
    return "".join(
        begin.replace("IS_TEXT", str(isinstance(value, str)).lower()).replace("KEY", key)
        + (value if isinstance(value, str) else json.dumps(value))
        + end
        for key, value in arguments.items()
    )


def arguments_of(form, texts, **arguments):
    """Arguments in the style of a form."""
    if form.arguments == "tagged":
        return tagged(form, **arguments)
    return texts[form.arguments].replace("QUOTE", form.quote)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_what_the_grammar_allows_the_parser_reads(compiler, form):
    one = FORMS[form]
    calls = [
        call(form, name, arguments_of(one, texts, **arguments))
        for name, texts, arguments in (
            ("get_weather", ARGUMENTS, {"city": "Paris"}),
            ("get_time", NOTHING, {}),
            (
                "search-files",
                SEARCHED,
                {"query": 'a "b"\n</c>', "limit": 3, "deep": True, "paths": ["x"]},
            ),
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
    time = call(form, "get_time", arguments_of(one, NOTHING)) + one.closing
    weather = call(form, "get_weather", arguments_of(one, ARGUMENTS, city="Paris"))
    assert accepts(compiler, form, time, named)
    assert not accepts(compiler, form, weather + one.closing, named)
    assert not accepts(
        compiler, form, call(form, "get_weather", arguments_of(one, NOTHING)) + one.closing
    )


def test_arguments_follow_the_schema(compiler):
    def json_call(arguments):
        return call("hermes", "get_weather", json.dumps(arguments)) + "\n</tool_call>"

    assert accepts(compiler, "hermes", json_call({"city": "Rome"}))
    assert not accepts(compiler, "hermes", json_call({"city": 3}))
    assert not accepts(compiler, "hermes", json_call({"city": "Rome", "unit": "C"}))


@pytest.mark.parametrize("form", ["qwen-xml", "minimax", "gemma4", "llama-python"])
def test_texts_of_a_list_are_allowed_only(compiler, form):
    unit = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
    }
    tools = [Tool("get_weather", "", unit)]
    one = FORMS[form]
    paris = call(form, "get_weather", arguments_of(one, ARGUMENTS, city="Paris"))
    assert accepts(compiler, form, paris + one.closing, tools=tools)
    assert not accepts(compiler, form, paris.replace("Paris", "Oslo") + one.closing, tools=tools)


def test_an_argument_may_have_the_name_of_a_placeholder(compiler):
    form = FORMS["deepseek-v3.2"]
    tools = [Tool("f", "", {"type": "object", "properties": {"IS_TEXT": {"type": "string"}}})]
    text = call(form.name, "f", '<｜DSML｜parameter name="IS_TEXT" string="true">x' + form.tags[1])
    assert accepts(compiler, form.name, text + form.closing, tools=tools)


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


def test_a_value_ends_at_a_tag_that_is_a_control_token(compiler):
    controls = type(TOKENIZER.control_tokens)({"</arg_value>": 5, "</tool_call>": 257})
    grammar = call_grammar(FORMS["glm"], ALL, ToolChoice("required"), controls)
    matcher = compiler.build(grammar).result(30).matcher()
    begun = b"get_weather\n<arg_key>city</arg_key>\n<arg_value>"
    assert matcher.consume([*begun, *b"a </b>", 5, *b"\n", 257])
    assert matcher.accepting


def test_a_value_ends_at_a_tag_with_a_control_token_in_it(compiler):
    controls = type(TOKENIZER.control_tokens)({"｜DSML｜": 5})
    grammar = call_grammar(FORMS["deepseek-v3.2"], ALL, ToolChoice("required"), controls)
    matcher = compiler.build(grammar).result(30).matcher()
    name, key = b'invoke name="get_weather">\n', b'parameter name="city" string="true">'
    value = [*b"a </b>\n</", 5, *b"parameter>\n"]
    ends = [*b"</", 5, *b"invoke>\n</", 5, *b"function_calls>"]
    assert matcher.consume([*b"<", 5, *name, *b"<", 5, *key, *value, *ends])
    assert matcher.accepting


def test_ids_beyond_the_tokens_of_the_checking_process_are_allowed():
    controls = type(TOKENIZER.control_tokens)({"[ARGS]": 200_000})
    grammar = call_grammar(FORMS["mistral-args"], ALL, ToolChoice("required"), controls)
    compiler = GrammarCompiler(TOKENIZER, 200_001)  # rows without a token
    with pytest.raises(Exception, match="token"):  # of this vocabulary, not of the check
        compiler.build(grammar).result(30)
    compiler.close()
