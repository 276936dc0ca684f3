"""Answers of models, by the form of their family: what is a call, what is text."""

import pytest

from engine.text.tool_calls.choosing import FORMS, new_parser
from tests.fakes.parsed_answer import TOOLS, parts_of, pieces_of, read_parts, values_of

PARIS = ("get_weather", {"city": "Paris"})
ROME = ("get_weather", {"city": "Rome"})
TIME = ("get_time", {})
SEARCH = ("search-files", {"query": 'a "b"\n</c>', "limit": 3, "deep": True, "paths": ["x"]})

ANY_FORM = [
    ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', [PARIS]),
    ('```json\n{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Paris"\n  }\n}\n```', [PARIS]),
    ('  ```json\n  {"name": "get_weather", "arguments": {"city": "Paris"}}\n  ```', [PARIS]),
    ('```\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```\n', [PARIS]),
    ('```json {"name": "get_weather", "arguments": {"city": "Paris"}}```', [PARIS]),
    ('~~~json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n~~~', [PARIS]),
    ('```xml\n<tool_call>{"name": "get_time"}</tool_call>\n```', [TIME]),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}}', [PARIS]),
    ('{"name": "get_weather", "parameters": {"city": "Paris"}}', [PARIS]),
    ('{"arguments": {"city": "Paris"}, "name": "get_weather"}', [PARIS]),
    ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}', [PARIS]),
    ('{"arguments": "{\\"city\\": \\"Paris\\"}", "name": "get_weather"}', [PARIS]),
    ('{{"name": "get_weather", "arguments": {"city": "Paris"}}}', [PARIS]),
    ('{{"name": "get_weather", "arguments": {{"city": "Paris"}}}}', [PARIS]),
    ('{"name": "get_weather", "arguments": {{"city": "Paris"}}}', [PARIS]),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}}}', [PARIS]),
    ('```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}}\n```', [PARIS]),
    ('````json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n````', [PARIS]),
    ('[{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}, {"function": {"name": "get_time"}}]', [PARIS, TIME]),
    ('{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}, {"name": "get_time"}', [PARIS, TIME]),
    ("{'name': 'get_weather', 'arguments': {'city': 'Paris'}}", [PARIS]),
    ('{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}', [PARIS]),
    ('{"function": "get_weather", "arguments": {"city": "Paris"}}', [PARIS]),
    ('{"tool_name": "get_weather", "parameters": {"city": "Paris"}}', [PARIS]),
    ('{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}', [PARIS]),
    ('{"tool_calls": [{"id": "1", "name": "get_weather", "arguments": {"city": "Paris"}}, '
     '{"id": "2", "name": "get_time", "arguments": {}}]}', [PARIS, TIME]),
    ('{"name": "get_time"}', [TIME]),
    ('{"name": "get_time", "arguments": null}', [TIME]),
    ('{"name": "get_time", "arguments": ""}', [TIME]),
    ('[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "get_time"}]', [PARIS, TIME]),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}}\n'
     '{"name": "get_weather", "arguments": {"city": "Rome"}}', [PARIS, ROME]),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}}{"name": "get_time"}', [PARIS, TIME]),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}}; {"name": "get_time"}', [PARIS, TIME]),
    ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
     '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>', [PARIS, ROME]),
    ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}', [PARIS]),
    ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}\n</tool_call>', [PARIS]),
    ('<tools>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tools>', [PARIS]),
    ('<function_call>{"name": "get_time", "arguments": {}}</function_call>', [TIME]),
    ('<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>', [PARIS]),
    ('```tool_code\nprint(get_weather(city="Paris"))\n```', [PARIS]),
    ('I look it up.\n\n```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```\n\nOne moment.',
     ["I look it up.", PARIS, "\n\nOne moment."]),
    ('Sure: {"name": "get_weather", "arguments": {"city": "Paris"}}', ["Sure:", PARIS]),
    ('{"name": "get_weather", "arguments": {"city": "Paris",}}', [PARIS]),
    ('{"name": "get_weather", "arguments": {"city": Paris}}', [PARIS]),
    ('{"name": "get_weather", "arguments": {"city": "a\nb \\d \\u00e9 \\ud83d\\ude00"}}',
     [("get_weather", {"city": "a\nb \\d é 😀"})]),
    ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"', [PARIS]),
    ('{"name": "get_weather", "arguments": {"city": "Par', [("get_weather", {"city": "Par"})]),
    ('{"name": "get_weather", "arguments": {"city": "Paris"}} and so on', [PARIS, " and so on"]),
]  # fmt: skip
"""Read in every form: models write JSON whatever their template asks for."""

NO_CALLS = [
    "Hello!",
    "",
    " \n ",
    "Hello!\n",
    '{"name": "multiply", "arguments": {"a": 1}}',
    '```json\n{"name": "multiply", "arguments": {"a": 1}}\n```\nThat is it.',
    '<tool_call>\n{"name": "multiply", "arguments": {}}\n</tool_call>',
    '{"name": "Ann", "age": 3}',
    '{"name": "get_weather", "age": 3}',
    '{"name": "get_weather", "description": "The weather.", "parameters": {"type": "object"}}',
    '{"name": "get_weather", "parameters": {"type": "object", "properties": {}}}',
    '{"result": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
    '[1, 2, {"name": "get_weather", "arguments": {}}]',
    '```python\ncall = {"name": "get_weather", "arguments": {}}\n{"name": "get_time"}\n```\n',
    "```python\nprint(get_weather(city='Paris'))\n```",
    'Write `{"name": "get_time"}` to call it.',
    'f{"name": "get_time"}',
    '{"name": "get_weather", "arguments": "Paris"}',
    '{"name": "get_weather", "arguments": ["Paris"]}',
    '{"name": 5, "arguments": {}}',
    "{",
    "{{",
    "[",
    "```",
    "```json",
    "<",
    "<tool_call>",
    "<tool_call>\nnothing\n</tool_call>",
    "a < b and c > d, [link](x), {x: 1}, `code`, ~tilde~",
    '{"name',
    '{"name": "get_wea',
    "$f(x) = \\{1, 2\\}$",
    "{" * 100,
    "[" * 100,
    "<tool_call>" * 3,
    '{"arguments": ' * 80,
]  # fmt: skip
"""Text, byte for byte, in every form."""

OWN_FORMS = [
    ("qwen-xml", "<tool_call>\n<function=search-files>\n<parameter=query>\na \"b\"\n</c>\n</parameter>\n"
     "<parameter=limit>\n3\n</parameter>\n<parameter=deep>\ntrue\n</parameter>\n<parameter=paths>\n"
     '["x"]\n</parameter>\n</function>\n</tool_call>', [SEARCH]),
    ("qwen-xml", "I look.\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
     ["I look.", PARIS]),
    ("qwen-xml", "<tool_call>\n<function=get_time>\n</function>\n</tool_call>", [TIME]),
    ("qwen-xml", "<tool_call><function=get_weather><parameter=city>Paris</parameter></function></tool_call>", [PARIS]),
    ("qwen-xml", "<tool_call>\n<function=search-files>\n<parameter=query>\n<parameter=x>\n</parameter>\ny\n</parameter>\n"
     "<parameter=note>\nnull\n</parameter>\n<parameter=deep>\nTrue\n</parameter>\n<parameter=limit>\nfive\n</parameter>\n"
     "</function>\n</tool_call>",
     [("search-files", {"query": "<parameter=x>\n</parameter>\ny", "note": None, "deep": True, "limit": "five"})]),
    ("qwen-xml", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis", [PARIS]),
    ("qwen-xml", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>\n"
     "<tool_call>\n<function=get_time>\n</function>\n</tool_call>", [PARIS, TIME]),
    ("qwen-xml", "<function=multiply>\n<parameter=a>\n1\n</parameter>\n</function>",
     ["<function=multiply>\n<parameter=a>\n1\n</parameter>\n</function>"]),
    ("glm", "<tool_call>search-files\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>\n<arg_key>limit</arg_key>\n"
     "<arg_value>3</arg_value>\n</tool_call>", [("search-files", {"query": "x", "limit": 3})]),
    ("glm", "<tool_call>get_time\n</tool_call>", [TIME]),
    ("glm", "<tool_call>search-files<arg_key>query</arg_key><arg_value>x</arg_value><arg_key>limit</arg_key>"
     "<arg_value>3</arg_value></tool_call><tool_call>get_time</tool_call>", [("search-files", {"query": "x", "limit": 3}), TIME]),
    ("llama-json", '{"name": "get_weather", "parameters": {"city": "Paris"}}', [PARIS]),
    ("llama-json", '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "get_time", "parameters": {}}',
     [PARIS, TIME]),
    ("llama-json", '<|python_tag|>get_weather.call(city="Paris")', [PARIS]),
    ("llama-json", '<function=get_weather>{"city": "Paris"}</function>', [PARIS]),
    ("llama-python", '[get_weather(city="Paris"), get_time()]', [PARIS, TIME]),
    ("llama-python", "[search-files(query='a \"b\"\\n</c>', limit=3, deep=True, paths=['x'])]", [SEARCH]),
    ("llama-python", "[get_weather('Paris')]", [PARIS]),
    ("llama-python", "[search-files(note=None, options={'a': (1, 2.5)})]",
     [("search-files", {"note": None, "options": {"a": [1, 2.5]}})]),
    ("llama-python", "[multiply(a=1)]", ["[multiply(a=1)]"]),
    ("llama-python", "See [get_weather] (the tool).", ["See [get_weather] (the tool)."]),
    ("mistral", '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "get_time", "arguments": {}}]',
     [PARIS, TIME]),
    ("mistral", '[TOOL_CALLS][{"arguments": {"city": "Paris"}, "name": "get_weather", "id": "abcdefghi"}]', [PARIS]),
    ("mistral-args", '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}', [PARIS]),
    ("mistral-args", '[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[ARGS]{}', [PARIS, TIME]),
    ("mistral-args", '[TOOL_CALLS]get_weather{"city": "Paris"}', [PARIS]),
    ("mistral-args", 'Fine.[TOOL_CALLS]multiply[ARGS]{"a": 1}', ['Fine.[TOOL_CALLS]multiply[ARGS]{"a": 1}']),
    ("lfm2", '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>I look it up.', [PARIS, "I look it up."]),
    ("lfm2", '<|tool_call_start|>[get_weather(city="Paris"), get_time()]<|tool_call_end|>', [PARIS, TIME]),
    ("lfm2", '<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|tool_call_end|>', [PARIS]),
    ("phi4", '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>', [PARIS]),
    ("phi4", 'functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]', [PARIS]),
    ("phi4", "functools are useful", ["functools are useful"]),
    ("granite", '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]', [PARIS]),
    ("granite", '<|tool_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}', [PARIS]),
    ("granite", '<tool_call>[{"name": "get_weather", "arguments": {"city": "Paris"}}]', [PARIS]),
    ("function-gemma", "<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>", [PARIS]),
    ("function-gemma", "<start_function_call>call:search-files{query:<escape>a \"b\"\n</c><escape>,limit:3,deep:true,"
     "paths:[<escape>x<escape>]}<end_function_call>", [SEARCH]),
    ("gemma4", '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|><|tool_call>call:get_time{}<tool_call|>',
     [PARIS, TIME]),
    ("gemma4", '<|tool_call>call:search-files{options:{a:{b:<|"|>}<|"|>}},limit:null}<tool_call|>',
     [("search-files", {"options": {"a": {"b": "}"}}, "limit": None})]),
    ("deepseek", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```'
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", [PARIS]),
    ("deepseek", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>'
     "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", [PARIS, TIME]),
    ("minimax", '<minimax:tool_call>\n<invoke name="search-files">\n<parameter name="query">a "b"\n</c></parameter>\n'
     '<parameter name="limit">3</parameter>\n<parameter name="deep">true</parameter>\n<parameter name="paths">["x"]</parameter>\n'
     "</invoke>\n</minimax:tool_call>", [SEARCH]),
    ("minimax", '<minimax:tool_call><invoke name="get_weather"><parameter name="city">Paris</parameter></minimax:tool_call>Done.',
     [PARIS, "Done."]),
    ("minimax", '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
     '<invoke name="get_time">\n</invoke>\n</minimax:tool_call>', [PARIS, TIME]),
    ("minimax", '<minimax:tool_call><invoke name="multiply"></invoke></minimax:tool_call>',
     ['<minimax:tool_call><invoke name="multiply"></invoke></minimax:tool_call>']),
    ("deepseek-v3.2", '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search-files">\n'
     '<｜DSML｜parameter name="query" string="true">a "b"\n</c></｜DSML｜parameter>\n'
     '<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n<｜DSML｜parameter name="deep" string="false">true'
     '</｜DSML｜parameter>\n<｜DSML｜parameter name="paths" string="false">["x"]</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
     "</｜DSML｜function_calls>", [SEARCH]),
    ("deepseek-v3.2", '<｜DSML｜function_calls><｜DSML｜invoke name="search-files"><｜DSML｜parameter name="note" string="true">7'
     '</｜DSML｜parameter><｜DSML｜parameter name="other" string="false">7</｜DSML｜parameter></｜DSML｜invoke>',
     [("search-files", {"note": "7", "other": 7})]),
    ("minicpm", '<function name="search-files"><param name="query"><![CDATA[a "b"\n</c>]]></param><param name="limit">3</param>'
     '<param name="deep">True</param><param name="paths">[\'x\']</param></function>', [SEARCH]),
    ("minicpm", 'I look.\n<function name="get_weather"><param name="city">Paris</param></function><function name="get_time"></function>',
     ["I look.", PARIS, TIME]),
    ("minicpm", '<function name="multiply"></function>', ['<function name="multiply"></function>']),
    ("deepseek-v4", '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_time">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>', [TIME]),
    ("seed", "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>\n"
     "<seed:tool_call>\n<function=get_time>\n</function>\n</seed:tool_call>", [PARIS, TIME]),
    ("kimi", '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}'
     "<|tool_call_end|><|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
     "<|tool_calls_section_end|>", [PARIS, TIME]),
    ("kimi", '<|tool_call_begin|>get_weather<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>', [PARIS]),
    ("command", '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}},\n'
     '    {"tool_call_id": "1", "tool_name": "get_time", "parameters": {}}\n]<|END_ACTION|>', [PARIS, TIME]),
    ("nemotron", '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "get_time", "arguments": {}}]</TOOLCALL>',
     [PARIS, TIME]),
    ("nemotron", '<TOOLCALL>[{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}]</TOOLCALL>', [PARIS]),
    ("apriel", '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "call_1"}]</tool_calls>', [PARIS]),
    ("olmo", '<function_calls>get_weather(city="Paris")\nget_time()</function_calls>', [PARIS, TIME]),
    ("harmony", "<|channel|>analysis<|message|>The user asks.<|end|><|start|>assistant<|channel|>commentary "
     'to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>', [("reasoning", "The user asks."), PARIS]),
    ("harmony", ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>', [PARIS]),
    ("harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello <b>!<|return|>",
     [("reasoning", "Hm."), "Hello <b>!"]),
    ("harmony", "<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.get_time <|constrain|>json<|message|>{}<|call|>", ["I look it up.", TIME]),
    ("harmony", '<|channel|>commentary to=functions.multiply <|constrain|>json<|message|>{"a": 1}<|call|>', ['{"a": 1}']),
    ("harmony", "Hello.", ["Hello."]),
]  # fmt: skip

LENIENT = sorted(set(FORMS) - {"harmony"})


def parse(form, text, size, **options):
    parser = new_parser(FORMS[form], TOOLS, parallel=True)
    return read_parts(parts_of(parser, pieces_of(text, size), **options))


def in_every_way(form, text):
    """The parts of a text, which must not depend on how it arrives."""
    whole = parse(form, text, max(1, len(text)))
    for size in (1, 2, 3, 7):
        assert parse(form, text, size) == whole
    return values_of(whole)


@pytest.mark.parametrize("form", LENIENT)
@pytest.mark.parametrize(("text", "expected"), ANY_FORM)
def test_calls_that_any_model_writes(form, text, expected):
    assert in_every_way(form, text) == expected


@pytest.mark.parametrize("form", LENIENT)
@pytest.mark.parametrize("text", NO_CALLS)
def test_text_that_is_no_call_stays_as_it_is(form, text):
    assert "".join(in_every_way(form, text)) == text


@pytest.mark.parametrize(("form", "text", "expected"), OWN_FORMS)
def test_calls_in_the_form_of_the_family(form, text, expected):
    assert in_every_way(form, text) == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par'),
        ("qwen-xml", "<tool_call>\n<function=get_weather>\n<parameter=city>\nPar"),
        ("llama-python", '[get_weather(city="Par'),
        ("gemma4", '<|tool_call>call:get_weather{city:<|"|>Par'),
        ("harmony", '<|channel|>commentary to=functions.get_weather<|message|>{"city": "Par'),
    ],
)
def test_a_call_that_a_limit_cuts_stays_incomplete(form, text):
    ((name, arguments),) = [tuple(one) for one in parse(form, text, 5, cut=True)]
    assert name == "get_weather"
    assert arguments.replace(" ", "").rstrip("r").rstrip("a") == '{"city":"P'


@pytest.mark.parametrize(("form", "text"), [(name, text) for name, text, _ in OWN_FORMS])
def test_without_parallel_calls_the_answer_ends_after_the_first(form, text):
    parser = new_parser(FORMS[form], TOOLS, parallel=False)
    found = read_parts(parts_of(parser, [text]))
    calls = [one for one in found if isinstance(one, tuple) and one[0] != "reasoning"]
    assert len(calls) <= 1
    assert parser.ended is bool(calls)
    if calls:
        assert found[-1] == calls[0]
        assert parser.feed("more") == []
