"""Tools, calls and results in the chat templates of families."""

import json
import re

import pytest

from engine.api.errors import InvalidRequest
from engine.api.tools import CallFormName, Tool
from engine.text.chat_template import CHATML, ChatTemplate
from engine.text.tool_calls.call_ids import new_call_id, new_short_id, short_id
from engine.text.tool_calls.choosing import FORMS, form_of_template
from engine.text.tool_messages import template_tools, with_single_calls
from tests.fakes.family_templates import (
    BY_FORM,
    DEEPSEEK,
    GEMMA3,
    HARMONY,
    KIMI,
    LLAMA3,
    MISTRAL,
    QWEN,
)
from tests.fakes.parsed_answer import TOOLS
from tests.fakes.tool_template import tool_call

OFFERED = template_tools([*TOOLS.values()])
USER = {"role": "user", "content": "Weather in Paris and Rome?"}
SYSTEM = {"role": "system", "content": "Be brief."}
CALLS = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [
        tool_call("get_weather", {"city": "Paris"}, "call_one"),
        tool_call("get_weather", {"city": "Rome"}, "call_two"),
    ],
}
RESULTS = [
    {"role": "tool", "content": "sunny", "tool_call_id": "call_one", "name": "get_weather"},
    {"role": "tool", "content": "rain", "tool_call_id": "call_two", "name": "get_weather"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def template(source):
    return ChatTemplate(source, tokens=TOKENS)


def test_the_names_of_the_setting_are_those_of_the_forms():
    assert set(CallFormName.__args__) - {"auto"} == set(FORMS)


@pytest.mark.parametrize("name", BY_FORM)
def test_the_form_is_that_of_the_template(name):
    assert form_of_template(BY_FORM[name]).name == name


@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("'List of tools: [' + tool", "lfm2"),
        ("'<' + dsml_token + 'tool_calls>' set dsml_token = '｜DSML｜'", "deepseek-v4"),
        ("'<' + dsml_token + 'function_calls>' set dsml_token = '｜DSML｜'", "deepseek-v3.2"),
        ("<seed:tool_call><parameter=", "seed"),
        ("<tool_calls>[", "apriel"),
    ],
)
def test_a_form_is_found_by_what_its_templates_say(sign, name):
    assert form_of_template(sign).name == name


def test_a_template_without_tools_has_the_generic_form():
    assert form_of_template(CHATML).name == "generic"


@pytest.mark.parametrize("name", BY_FORM)
def test_every_template_writes_the_tools(name):
    text = template(BY_FORM[name]).render([USER], tools=OFFERED)
    assert all(tool in text for tool in TOOLS)
    assert USER["content"] in text


@pytest.mark.parametrize("name", BY_FORM)
def test_every_template_writes_calls_and_results(name):
    text = template(BY_FORM[name]).render([USER, CALLS, *RESULTS], tools=OFFERED)
    places = [text.rindex(one) for one in ("Paris", "sunny", "Rome", "rain")]
    assert len(set(places)) == 4


@pytest.mark.parametrize(
    "name", [one for one in BY_FORM if one not in ("mistral", "mistral-args")]
)  # theirs moves it
def test_the_tools_are_the_same_text_in_every_turn(name):
    shown = template(BY_FORM[name])
    first = shown.render([SYSTEM, USER], tools=OFFERED, add_generation_prompt=False)
    later = shown.render([SYSTEM, USER, CALLS, *RESULTS], tools=OFFERED)
    assert later.startswith(first)


def test_members_of_parameters_keep_their_order():
    properties = {"zeta": {"type": "string"}, "alpha": {"enum": ["b", "a"]}}
    tool = Tool("f", "", {"type": "object", "properties": properties, "required": ["zeta"]})
    text = template(QWEN).render([USER], tools=template_tools([tool]))
    assert json.dumps(properties) in text


def test_a_template_without_tools_gets_them_in_the_first_system_message():
    text = template(CHATML).render([SYSTEM, USER], tools=OFFERED)
    system, _, rest = text.partition("<|im_end|>")
    assert system.startswith("<|im_start|>system\nBe brief.\n\n")
    assert all(json.dumps(tool) in system for tool in OFFERED)
    assert "<tool_call>" in system
    assert rest.startswith("\n<|im_start|>user\nWeather")
    alone = template(CHATML).render([USER], tools=OFFERED)
    assert alone.startswith("<|im_start|>system\nYou can call")


def test_a_template_without_system_messages_gets_them_from_the_user():
    text = template(GEMMA3).render([SYSTEM, USER], tools=OFFERED)
    assert text.startswith("<s><start_of_turn>user\nBe brief.\n\nYou can call")


def test_calls_of_one_message_are_divided_where_the_template_takes_one():
    text = template(LLAMA3).render([USER, CALLS, *RESULTS], tools=OFFERED)
    order = ["Paris", "sunny", "Rome", "rain"]
    assert sorted(order, key=text.rindex) == order


def test_a_template_for_tools_may_loop_over_them_without_asking():
    looping = QWEN.replace(
        "{%- if tools %}", "{%- for tool in tools %}{%- endfor %}{%- if tools %}"
    )
    with pytest.raises(InvalidRequest):
        template(looping).render([USER])
    both = ChatTemplate("{{ 'plain' }}", tokens=TOKENS, tool_use=looping)
    assert both.render([USER, CALLS, *RESULTS]) == template(QWEN).render([USER, CALLS, *RESULTS])


@pytest.mark.parametrize(
    "demand",
    [
        "{{ tool.function.parameters.properties.city.description + '' }}",
        "{% macro kind(one) %}{{ kind(one) }}{% endmacro %}{{ kind(tool) }}",
        "{{ raise_exception('no') if tool.function.name != 'a_tool_name' }}",
    ],
)
def test_a_template_that_fails_on_a_schema_gets_the_tools_in_a_message(demand):
    source = QWEN.replace(
        "{{- tool | tojson }}",
        "{{ tool | tojson }}{% if tool.function.parameters.properties %}" + demand + "{% endif %}",
    )
    asked = template(source)
    assert asked.renders_offers
    text = asked.render([SYSTEM, USER], tools=OFFERED)
    assert all(tool in text for tool in TOOLS)
    assert text.count(USER["content"]) == 1
    assert SYSTEM["content"] in text


def test_a_template_for_tools_is_used_where_there_are_tools_calls_or_results():
    both = ChatTemplate("{{ 'plain' }}", tokens=TOKENS, tool_use=QWEN)
    only = template(QWEN)
    assert both.render([USER]) == "plain"
    assert both.render([USER], tools=OFFERED) == only.render([USER], tools=OFFERED)
    history = [USER, CALLS, *RESULTS]
    assert both.render(history) == only.render(history)
    assert ChatTemplate("x", tokens=TOKENS, tool_use=" ").render([USER], tools=OFFERED) != "plain"


def test_arguments_are_text_where_the_template_reads_them_so():
    text = template(DEEPSEEK).render([USER, CALLS, *RESULTS], tools=OFFERED)
    assert 'get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>' in text
    assert "sunny" in text


@pytest.mark.parametrize("source", [DEEPSEEK, CHATML], ids=["deepseek", "chatml"])
def test_arguments_that_nest_too_deep_for_their_text_are_refused(source):
    deep = {}
    for _ in range(5000):
        deep = {"a": deep}
    calls = {"role": "assistant", "content": "", "tool_calls": [tool_call("f", deep)]}
    with pytest.raises(InvalidRequest, match="nested too deep"):
        template(source).render([USER, calls])


def test_ids_have_names_where_the_template_looks_for_them_there():
    more = [
        {**one, "tool_calls": one["tool_calls"][:1]} if one is CALLS else one for one in [CALLS]
    ]
    text = template(KIMI).render([USER, CALLS, *RESULTS, USER, *more, RESULTS[0]], tools=OFFERED)
    ids = re.findall(r"<\|tool_call_begin\|>([^<]*)<", text)
    assert ids == ["functions.get_weather:0", "functions.get_weather:1", "functions.get_weather:2"]
    results = re.findall(r"Return of (\S+)", text)
    assert results == [ids[0], ids[1], ids[2]]
    assert "call_one" not in text


def test_ids_are_short_where_the_template_demands_it():
    strict = template(MISTRAL)
    assert strict.demands_short_ids
    text = strict.render([USER, CALLS, *RESULTS])
    assert f'"call_id": "{short_id("call_one")}"' in text
    kept = "abcDEF123"
    assert short_id(kept) == kept
    assert not template(QWEN).demands_short_ids


def test_ids_are_unique_and_of_their_form():
    assert len({new_call_id() for _ in range(100)}) == 100
    short = {new_short_id() for _ in range(100)}
    assert len(short) == 100
    assert all(len(one) == 9 and one.isalnum() for one in short)
    assert len({short_id(f"call_{number}") for number in range(1000)}) == 1000


def test_results_have_the_name_of_their_tool():
    single = [{**CALLS, "tool_calls": CALLS["tool_calls"][:1]}, RESULTS[0]]
    text = template(HARMONY).render([USER, *single], tools=OFFERED)
    assert "functions.get_weather to=assistant" in text


def test_system_messages_in_the_middle_stay_beside_tools():
    reminder = {"role": "system", "content": "Only Celsius."}
    for source in BY_FORM.values():
        messages = [SYSTEM, USER, {"role": "assistant", "content": "Yes?"}, reminder, USER]
        text = template(source).render(messages, tools=OFFERED)
        assert "Only Celsius." in text
        assert all(tool in text for tool in TOOLS)


def test_results_belong_to_the_calls_before_them_where_ids_recur():
    def turn(result):
        calls = [
            {"id": name, "type": "function", "function": {"name": name, "arguments": {}}}
            for name in ("call_0", "call_1")
        ]
        return [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_0", "content": f"{result} 0"},
            {"role": "tool", "tool_call_id": "call_1", "content": f"{result} 1"},
        ]

    single = with_single_calls([*turn("first"), *turn("second")])
    contents = [one["content"] for one in single if one["role"] == "tool"]
    assert contents == ["first 0", "first 1", "second 0", "second 1"]
    assert [one["role"] for one in single] == ["assistant", "tool"] * 4
