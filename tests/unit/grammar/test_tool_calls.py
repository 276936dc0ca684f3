"""Grammars of calls of tools: what they allow, and that no schema makes them fail."""

import json

import pytest
from llguidance import LLMatcher, LLTokenizer

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.api.tools import Tool, ToolChoice
from engine.grammar.call_grammar import call_grammar
from engine.grammar.length_bounds import MAX_ITEMS
from engine.grammar.limits import MAX_TOOLS_CHARS, parser_limits
from engine.grammar.source import parse_source
from engine.grammar.tool_calls import loose_lark, texts
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.choosing import FORMS
from engine.text.tool_calls.forms.hermes import HERMES
from tests.fakes.agent_tools import AGENT_TOOLS
from tests.fakes.grammars import compiled, toy_compiler
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer

NO_CONTROLS = ControlTokens({})
TOKENIZER = LLTokenizer("byte")
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler(byte_tokenizer(), VOCAB_SIZE)
    yield compiler
    compiler.close()


def calls_of(tools, **options):
    """A grammar of calls of tools, given by name and schema."""
    listed = [Tool(name, "", schema) for name, schema in tools.items()]
    return call_grammar(HERMES, listed, ToolChoice(), NO_CONTROLS, **options)


def accepts(tools, text, **options):
    """Whether a text is complete in the strictest grammar of the tools."""
    strict = next(texts(parse_source(calls_of(tools, **options)), lambda _: True))
    matcher = LLMatcher(
        TOKENIZER, LLMatcher.grammar_from_lark(strict.lark), limits=parser_limits("tool_calls")
    )
    assert not matcher.is_error(), matcher.get_error()
    written = list(text.encode())
    return matcher.try_consume_tokens(written) == len(written) and matcher.is_accepting()


def call(name, arguments, *, end="\n</tool_call>"):
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) + end


def test_a_call_has_a_declared_name_and_the_tool_s_arguments():
    tools = {"get_weather": WEATHER, "now": {}}
    assert accepts(tools, call("get_weather", {"city": "Oslo"}))
    assert accepts(tools, call("now", {}))
    assert not accepts(tools, call("get_time", {"city": "Oslo"}))
    assert not accepts(tools, call("get_weather", {}))
    assert not accepts(tools, call("now", {"city": "Oslo"}))
    assert not accepts(tools, call("get_weather", {"city": "Oslo", "unit": "C"}))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (call("read", {"path": 7}), True),
        (call("read", {"path": "a"}), True),
        (call("read", {}), False),
        (call("write", {"path": "a"}), False),
    ],
)
def test_a_loose_grammar_demands_the_names_of_the_arguments(text, allowed):
    path = {"type": "object", "properties": {"path": {"$ref": "http://x"}}, "required": ["path"]}
    begun = HERMES.begun
    lark = loose_lark(calls_of({"read": path}, begun=begun).source)
    matcher = LLMatcher(TOKENIZER, LLMatcher.grammar_from_lark(lark))
    assert not matcher.is_error(), matcher.get_error()
    written = list(text.removeprefix(begun).encode())
    accepted = matcher.try_consume_tokens(written) == len(written) and matcher.is_accepting()
    assert accepted is allowed


def test_a_name_may_begin_another():
    tools = {"get": WEATHER, "get_weather": {}}
    assert accepts(tools, call("get", {"city": "Oslo"}))
    assert accepts(tools, call("get_weather", {}))


def test_calls_are_as_many_as_were_decided_on():
    one, last = call("now", {}, end=""), "\n</tool_call>"
    for number in range(1, 5):
        text = HERMES.separator.join([one] * number) + last
        assert accepts({"now": {}}, text, calls=3) is (number == 3)
        assert accepts({"now": {}}, text)


def test_the_first_call_goes_on_from_what_the_prompt_has_of_it():
    rest = call("now", {}, end="").removeprefix('{"name": "')
    tools = {"now": {}, "get_weather": WEATHER}
    text = rest + HERMES.separator + call("get_weather", {"city": "Oslo"})
    assert accepts(tools, text, calls=2, begun='{"name": "')
    assert not accepts(tools, call("now", {}), begun='{"name": "')


def test_calls_are_written_on_one_line():
    assert not accepts(
        {"w": WEATHER}, '{"name": "w", "arguments": {\n"city": "Oslo"}}\n</tool_call>'
    )


def test_definitions_belong_to_their_tool():
    def tool(kind):
        return {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/X"}},
            "required": ["x"],
            "$defs": {"X": {"type": kind}},
        }

    tools = {"a": tool("integer"), "b": tool("boolean")}
    assert accepts(tools, call("a", {"x": 1}))
    assert accepts(tools, call("b", {"x": True}))
    assert not accepts(tools, call("a", {"x": True}))


@pytest.mark.parametrize("name", AGENT_TOOLS)
def test_a_schema_of_an_agent_can_be_built(compiler, name):
    built = compiled(compiler, calls_of({name: AGENT_TOOLS[name]}))
    assert f"{name}:parameters" not in built.not_enforced


def test_what_is_not_enforced_is_named_with_its_tool(compiler):
    built = compiled(compiler, calls_of(AGENT_TOOLS, calls=4))
    assert set(built.not_enforced) == {
        "send_mail:maxLength",
        "send_mail:pattern",
        "edit:format:color",
        "edit:uniqueItems",
    }


def test_recursion_and_null_are_written():
    leaf = {"name": "b", "children": []}
    tools = {"tree": AGENT_TOOLS["tree"]}
    assert accepts(tools, call("tree", {"root": {"name": "a", "children": [leaf]}}))
    tools = {"todo": AGENT_TOOLS["todo"]}
    assert accepts(tools, call("todo", {"action": "read", "todos": None}))
    assert accepts(tools, call("todo", {"action": "write", "todos": [{"id": "1", "content": "x"}]}))
    assert not accepts(tools, call("todo", {"action": "write", "todos": [{"id": "1"}]}))


def test_free_objects_stay_free():
    manifest = {"kind": "Pod", "spec": {"containers": [1, "x"]}}
    tools = {"apply": AGENT_TOOLS["apply"]}
    assert accepts(tools, call("apply", {"labels": {"app": "x"}, "manifest": manifest}))


@pytest.mark.parametrize(
    "schema",
    [
        False,
        3,
        {"not": {}},
        {"type": "object", "properties": {"x": {"type": "strin"}}},
        {"type": "object", "properties": {"x": {"$ref": "https://example.com/x"}}},
        {"type": "object", "properties": {"x": {"$ref": "#/components/schemas/X"}}},
        {"type": "object", "properties": {"x": {"type": "string", "pattern": "[a"}}},
        {"type": "object", "properties": {"x": {"minItems": "many", "type": "array"}}},
        {"type": "object", "properties": {"x": {}}, "required": [["x"]]},
        {"type": "object", "properties": {"x": {"type": [["string"]]}, "y": {"$ref": "#"}}},
        json.loads('{"items":' * 200 + "{}" + "}" * 200),
    ],
)
def test_a_schema_that_cannot_be_built_weakens_its_own_tool_only(compiler, schema):
    built = compiled(compiler, calls_of({"broken": schema, "get_weather": WEATHER}))
    assert built.not_enforced == ("broken:parameters",)
    for text, allowed in (
        (call("broken", {"x": 1}), True),
        (call("get_weather", {"city": "Oslo"}), True),
        (call("get_weather", {"town": "Oslo"}), False),
    ):
        matcher = built.matcher()
        assert matcher.consume(list(text.encode())) is allowed


def test_a_weakened_tool_keeps_the_names_of_its_arguments(compiler):
    schema = {
        "type": "object",
        "properties": {"x": {"type": "strin"}, "y": {"type": "integer"}},
        "required": ["x"],
    }
    built = compiled(compiler, calls_of({"broken": schema}))
    assert built.matcher().consume(list(call("broken", {"x": [1]}).encode()))
    assert not built.matcher().consume(list(call("broken", {"y": 1}).encode()))


def test_arrays_without_a_limit_have_one():
    tools = {
        "write": {
            "type": "object",
            "properties": {"lines": {"type": "array"}},
        }
    }
    assert accepts(tools, call("write", {"lines": [1] * MAX_ITEMS}))
    assert not accepts(tools, call("write", {"lines": [1] * (MAX_ITEMS + 1)}))


def test_a_limit_of_65536_characters_lets_a_long_text_pass(compiler):
    built = compiled(compiler, calls_of({"send_mail": AGENT_TOOLS["send_mail"]}))
    matcher = built.matcher()
    text = call("send_mail", {"to": "a@b.org", "body": "x" * 30_000})
    assert matcher.consume(list(text.encode())), matcher.error


def test_a_hundred_kilobytes_of_tools_are_built(compiler):
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "d" * 60} for n in range(12)},
    }
    tools = {f"tool_{number}": schema for number in range(90)}
    grammar = calls_of(tools, calls=None)
    assert len(grammar.source) > 97_000
    assert compiled(compiler, grammar).not_enforced == ()


def source(**changes):
    members = {"form": "hermes", "controls": {}, "tools": [["x", {}]], "calls": [1, 1], "begun": ""}
    return json.dumps(members | changes)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no list of tools"),
        ("{", "unexpected"),
        (source(tools=[]), "must have a tool"),
        (source(tools=[["", {}]]), "each a name"),
        (source(tools=[["x"]]), "no list"),
        (source(calls=[1]), "no list"),
        (source(form="morse"), "no list"),
        (source(controls=3), "no list"),
        (source(begun="x"), "begin every call"),
        (" " * (MAX_TOOLS_CHARS + 1), "characters"),
    ],
)
def test_a_damaged_source_is_refused_in_a_sentence(text, reason):
    with pytest.raises(InvalidRequest, match=reason):
        parse_source(Grammar("tool_calls", text))


@pytest.mark.parametrize("form", ["hermes", "qwen-xml", "glm", "gemma4", "llama-python"])
def test_a_call_may_write_a_whole_file(form):
    """Of a size that used up the matcher's states when characters were counted."""
    tool = Tool("write", "", {"properties": {"text": {"type": "string"}}, "required": ["text"]})
    grammar = call_grammar(FORMS[form], [tool], ToolChoice(), NO_CONTROLS, calls=1)
    strict = next(texts(parse_source(grammar), lambda _: True))
    matcher = LLMatcher(
        TOKENIZER, LLMatcher.grammar_from_lark(strict.lark), limits=parser_limits("tool_calls")
    )
    lines = "".join(f"    value[{n}] = other(first={n}, 'second')  # é\n" for n in range(3_000))
    body = {
        "hermes": call("write", {"text": lines}),
        "qwen-xml": f"<function=write>\n<parameter=text>\n{lines}\n</parameter>\n</function>\n</tool_call>",
        "glm": f"write\n<arg_key>text</arg_key>\n<arg_value>{lines}</arg_value>\n</tool_call>",
        "gemma4": f'call:write{{text:<|"|>{lines}<|"|>}}<tool_call|>',
        "llama-python": f"write(text={json.dumps(lines, ensure_ascii=False)})]",
    }[form]
    written = list(body.encode())
    assert len(written) > 100_000
    assert matcher.try_consume_tokens(written) == len(written), matcher.get_error()
    assert matcher.is_accepting()
