from datetime import datetime

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from engine.api.chat import content_with_images
from engine.api.errors import InvalidRequest
from engine.text.chat_template import CHATML, ChatTemplate
from engine.text.template_budget import TemplateBudget
from engine.text.template_sandbox import TemplateSandbox
from tests.fakes.tool_template import TOOL_TEMPLATE, tool_call

MESSAGES = [
    {"role": "system", "content": "Be <brief> & kind."},
    {"role": "user", "content": "  Wie geht's?\n"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nGut, 日本!"},
    {"role": "user", "content": "{{ 1 + 1 }} {% raw %}"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

MISTRAL = """
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate') }}
    {%- endif %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- else %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}
"""
REASONING = """
{%- if tools %}{{ tools | tojson }}{%- endif %}
{%- set ns = namespace(last=messages|length - 1, multi=true) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi and message.role == "user" %}
        {%- set ns.multi = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" and '</think>' in message.content %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {%- generation %}{{ '<|im_start|>' ~ message.role ~ '\\n' ~ content }}{% endgeneration %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content.replace('&', 'and') }}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
    {%- if loop.index0 > 10 %}{% break %}{% endif %}
{%- endfor %}
{%- macro tail(x) %}{{ x | upper }}{{ {'b': 1, 'a': ['é', x]} | tojson }}{% endmacro %}
{%- if add_generation_prompt %}{{ tail('go') }}{{ [1, 2] | join('-') }}{{ ns.last }}{% endif %}
"""


@pytest.mark.parametrize("source", [CHATML, MISTRAL, REASONING])
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_text_is_what_transformers_renders(source, add_generation_prompt):
    ours = ChatTemplate(source, tokens=TOKENS).render(
        MESSAGES, add_generation_prompt=add_generation_prompt
    )
    theirs, _ = render_jinja_template(
        conversations=[MESSAGES],
        chat_template=source,
        add_generation_prompt=add_generation_prompt,
        **TOKENS,
    )
    assert ours == theirs[0]


@pytest.mark.parametrize(
    "source",
    [
        "{{ [1, 2, 3, 4, 5] | batch(2, 0) | list }}{{ [1, 2, 3] | slice(2) | list }}",
        "{{ messages[0].content | truncate(9) }}{{ 'a' | center(5) }}|",
        "{% set between = joiner(', ') %}{% for m in messages %}{{ between() }}{{ m.role }}{% endfor %}",
        "{% set side = cycler('a', 'b') %}{% for m in messages %}{{ side.next() }}{% endfor %}",
        "{{ dict.fromkeys(['a', 'b'], 1) | tojson(indent=2, sort_keys=true) }}",
        "{{ {'é': [1, none, true]} | tojson(ensure_ascii=true, separators=(',', ':')) }}",
        "{% macro f(x) %}[{{ caller() }}{{ x }}{{ varargs }}]{% endmacro %}{% call f(1, 2) %}hi{% endcall %}",
        "{% filter upper %}abc{% endfilter %}{% set x %}{{ 1 }} {% endset %}{{ x | trim }}",
        "{% for g, l in messages | groupby('role') %}{{ g }}{{ l | length }}{% endfor %}",
        "{% for m in messages %}{{ loop.changed(m.role) }}{{ loop.cycle('a', 'b') }}{% endfor %}",
        "{% for m in messages if m.role == 'user' %}{{ loop.revindex0 }}{% else %}-{% endfor %}",
        "{{ messages[0].items() | list }}{{ messages[0].content[::-1] }}{{ messages.index(messages[1]) }}",
        "{{ undefined_name }}{{ messages[0].nope is defined }}{{ 'a' ~ 1 ~ none ~ [1] }}",
    ],
)
def test_constructs_are_rendered_as_by_transformers(source):
    # So that it is taken for the template of a conversation.
    source += "{% for m in messages %}{{ m.role ~ m.content }}{% endfor %}"
    theirs, _ = render_jinja_template(conversations=[MESSAGES], chat_template=source)
    ours = ChatTemplate(source, tokens={}).render(MESSAGES, add_generation_prompt=False)
    assert ours == theirs[0]


TOOL_MESSAGES = [
    {"role": "user", "content": "Weather in Paris and Rome?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            tool_call("weather", {"city": "Paris", "days": [1, 2]}, "a"),
            tool_call("weather", {"city": "Rome"}, "b"),
        ],
    },
    {"role": "tool", "content": "sunny", "tool_call_id": "a"},
    {"role": "tool", "content": "rain", "tool_call_id": "b"},
]


def test_tool_calls_are_rendered_as_by_transformers():
    template = ChatTemplate(TOOL_TEMPLATE, tokens=TOKENS)
    theirs, _ = render_jinja_template(
        conversations=[TOOL_MESSAGES], chat_template=TOOL_TEMPLATE, add_generation_prompt=True
    )
    assert template.renders_tools
    assert template.render(TOOL_MESSAGES) == theirs[0]
    assert '"arguments": {"city": "Paris", "days": [1, 2]}}' in theirs[0]


@pytest.mark.parametrize("source", [CHATML, MISTRAL])  # the second demands alternating roles
def test_a_template_without_tools_gets_calls_and_results_as_text(source):
    template = ChatTemplate(source, tokens=TOKENS)
    call, result = (
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris", "days": [1, 2]}}\n</tool_call>\n'
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>',
        "<tool_response>\nsunny\n</tool_response>\n<tool_response>\nrain\n</tool_response>",
    )
    user, _, *_ = TOOL_MESSAGES
    plain = [user, {"role": "assistant", "content": call}, {"role": "user", "content": result}]
    assert not template.renders_tools
    assert template.render(TOOL_MESSAGES) == template.render(plain)


def test_text_before_a_tool_call_is_kept():
    said = [{"role": "assistant", "content": "Let me see.", "tool_calls": [tool_call("f", {})]}]
    assert 'Let me see.\n<tool_call>\n{"name": "f"' in ChatTemplate(CHATML, tokens={}).render(said)


def rendered(source, **options):
    return ChatTemplate(source, tokens={}, **options).render([{"role": "user", "content": "hi"}])


def test_messages_are_not_evaluated_as_templates():
    assert rendered("{{ messages[0].content }}") == "hi"
    template = ChatTemplate("{{ messages[0].content }}", tokens={})
    assert template.render([{"role": "user", "content": "{{ 7 * 7 }}"}]) == "{{ 7 * 7 }}"


def test_the_clock_is_injected():
    sandbox = TemplateSandbox(now=lambda: datetime(2026, 2, 3))
    assert rendered("{{ strftime_now('%d %b %Y') }}", sandbox=sandbox) == "03 Feb 2026"


def test_a_rejection_has_the_message_of_the_template():
    with pytest.raises(InvalidRequest, match="rejects these messages: Roles must") as caught:
        ChatTemplate(MISTRAL, tokens=TOKENS).render([{"role": "assistant", "content": "x"}])
    assert caught.value.param == "messages"


GROW = (
    "{% set ns = namespace(x='aaaaaaaa') %}"
    "{% for i in range(60) %}{% set ns.x = STEP %}{% endfor %}"
)
LIMITED = {
    "endless loop": "{% for i in range(99999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "loop over a huge range": "{% for i in range(10**12) %}{% endfor %}",
    "endless recursion": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "deep recursion": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "recursive loop": "{% for m in [messages] recursive %}{{ loop([messages]) }}{% endfor %}",
    "endless output": "{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
    "repeated string": "{{ 'a' * 10**10 }}",
    "repeated list": "{{ ([1] * 10**10)|length }}",
    "great power": "{{ 9**99999 }}",
    "great product": "{% set ns = namespace(x=9**300) %}{% for i in range(99) %}"
    "{% set ns.x = ns.x * ns.x %}{% endfor %}{{ ns.x }}",
    "doubling by ~": GROW.replace("STEP", "ns.x ~ ns.x"),
    "doubling by +": GROW.replace("STEP", "ns.x + ns.x"),
    "doubling by replace": GROW.replace("STEP", "ns.x.replace('a', 'aa')"),
    "doubling by replace filter": GROW.replace("STEP", "ns.x|replace('a', 'aa')"),
    "doubling by join": GROW.replace("STEP", "[ns.x, ns.x]|join"),
    "nested lists": GROW.replace("STEP", "[ns.x, ns.x]"),
    "nested mappings": GROW.replace("STEP", "dict(a=ns.x, b=ns.x)"),
    "nested display": GROW.replace("STEP", "{'a': ns.x, 'b': ns.x}"),
    "list of a huge text": "{{ ('a' * 9999999)|list|length }}",
    "split of a huge text": "{{ ('a,' * 4000000).split(',')|length }}",
    "wide %": "{{ '%9999999999d' % 1 }}",
    "wide %*": "{{ '%*d' % (9999999999, 1) }}",
    "wide named %": "{{ '%(x)9999999999d' % {'x': 1} }}",
    "wide % in a nested name": "{{ '%((x))9999999999d' % {'(x)': 1} }}",
    "precise %": "{{ '%.9999999999f' % 1 }}",
    "wide format filter": "{{ '%9999999999d'|format(1) }}",
    "many named %": "{{ ('%(x)s' * 9999) % {'x': 'a' * 9999} }}",
    "doubling by %": GROW.replace("STEP", "'%s%s' % (ns.x, ns.x)"),
    "doubling by format": GROW.replace("STEP", "'{0}{0}'.format(ns.x)"),
    "many fields": "{{ ('{x}' * 9999).format(x='a' * 9999) }}",
    "precise format": "{{ '{:.9999999999f}'.format(1) }}",
    "width from a field": "{{ '{:{w}}'.format(1, w=9**9) }}",
    "object in a format": "{{ '{}'.format(namespace(a=1)) }}",
    "wide format": "{{ '{:>9999999999}'.format(1) }}",
    "wide format_map": "{{ '{a:>9999999999}'.format_map({'a': 1}) }}",
    "wide centre": "{{ 'a'|center(10**10) }}",
    "wide ljust": "{{ 'a'.ljust(10**10) }}",
    "wide rjust": "{{ 'a'.rjust(10**10) }}",
    "wide zfill": "{{ 'a'.zfill(10**10) }}",
    "wide tabs": "{{ ('\t' * 9999).expandtabs(10**10) }}",
    "sum of lists": "{{ [[1], [2]]|sum(start=[]) }}",
    "precise rounding": "{{ 1.5|round(10**9, 'ceil') }}",
    "wide indent": "{{ 'a\nb'|indent(10**10) }}",
    "wide JSON": "{{ [1]|tojson(indent=10**10) }}",
    "long batch": "{{ [1]|batch(10**9, 'x')|length }}",
    "many slices": "{{ [1]|slice(10**9)|length }}",
    "doubling by batch": GROW.replace("STEP", "[ns.x, ns.x]|batch(2)|list"),
    "object in a truncated text": "{{ namespace(a=1)|truncate(1) }}",
    "wide time": "{{ strftime_now('%999999999d') }}",
    "wide bytes": "{{ (1).to_bytes(10**10, 'big') }}",
    "lorem ipsum": "{{ lipsum(n=10**9) }}",
    "huge source": "a" * 200_000,
    "huge number": "{{ " + "9" * 5000 + " }}",
    "deep expression": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "text in an object": "{{ namespace(a=1) }}",
    "object in JSON": "{{ [namespace(a=1)]|tojson }}",
}


@pytest.mark.parametrize("source", LIMITED.values(), ids=LIMITED)
def test_a_template_that_exceeds_a_limit_is_stopped(source, monkeypatch):
    # A sixteenth of the work, which takes seconds, and no time: another test is about that.
    monkeypatch.setattr("engine.text.template_budget._MAX_WORK", 1 << 24)
    budget = TemplateBudget(clock=lambda: 0.0)
    with pytest.raises(InvalidRequest, match="chat template") as caught:
        ChatTemplate(source, tokens={}).render([{"role": "user", "content": "hi"}], budget=budget)
    assert "\n" not in str(caught.value)


ESCAPES = {
    "class": "{{ ''.__class__ }}",
    "subclasses": "{{ ().__class__.__base__.__subclasses__() }}",
    "attr filter": "{{ messages|attr('__class__') }}",
    "map attribute": "{{ messages|map(attribute='__class__')|list }}",
    "globals of a function": "{{ raise_exception.__globals__['os'] }}",
    "globals of a global": "{{ cycler.__init__.__globals__.os }}",
    "format attribute": "{{ '{0.__class__}'.format(messages) }}",
    "format item": "{{ '{0[0].__class__}'.format(messages) }}",
    "format_map attribute": "{{ '{a.__class__}'.format_map({'a': messages}) }}",
    "format method kept": "{% set f = '{0.__class__}'.format %}{{ f(messages) }}",
    "format of a class": "{{ ''.__class__.format('{0.__class__}', messages) }}",
    "format by map": "{{ ['{0.__class__}']|map('format', messages)|list }}",
    "self": "{{ self._TemplateReference__context }}",
    "changing a list": "{{ messages.append(1) }}",
    "changing a mapping": "{{ messages[0].update({'role': 'x'}) }}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import 'os' as os %}{{ os.name }}",
    "extends": "{% extends '/etc/passwd' %}",
}


@pytest.mark.parametrize("source", ESCAPES.values(), ids=ESCAPES)
def test_templates_cannot_access_python_internals(source):
    try:
        text = rendered(source)
    except InvalidRequest:
        return
    assert text.strip("[], ") == ""  # undefined values print nothing


@pytest.mark.parametrize(
    "source", ["{% for %}", "{{ x", "{{ nope.a.b }}", "{{ 1 / 0 }}", "{{ 'a' + 1 }}"]
)
def test_a_failing_template_is_an_error_in_one_sentence(source):
    with pytest.raises(InvalidRequest, match="fails on these messages") as caught:
        rendered(source)
    assert "\n" not in str(caught.value)


def test_time_is_limited():
    instants = iter([0.0, 0.5, 99.0])
    budget = TemplateBudget(clock=lambda: next(instants))
    template = ChatTemplate("{% for i in range(5) %}{% endfor %}", tokens={})
    with pytest.raises(InvalidRequest, match="longer than 2 seconds"):
        template.render([], budget=budget)


def test_a_long_chat_is_within_the_limits():
    messages = [{"role": "user", "content": "word " * 500}] * 2000
    text = ChatTemplate(CHATML, tokens={}).render(messages)
    assert len(text) > 5_000_000


PARTS = (
    "{% for m in messages %}[{{ m['role'] }}]{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}"
    "{% endif %}{% endfor %}{% endfor %}"
)
"""Iterates over the parts of a content, as templates of models that see images do."""
EITHER = (
    "{% for m in messages %}[{{ m['role'] }}]{% if m['content'] is string %}{{ m['content'] }}"
    "{% else %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}"
    "{% endif %}{% endfor %}"
)
SEEN = [
    {"role": "system", "content": "look"},
    {"role": "user", "content": content_with_images("what?", 2)},
    {"role": "assistant", "content": "cats"},
]


@pytest.mark.parametrize("source", [PARTS, EITHER])
def test_texts_and_images_are_rendered_by_templates_of_both_forms(source):
    rendering = ChatTemplate(source, tokens={}).render(SEEN, add_generation_prompt=False)
    assert rendering == "[system]look[user]<image><image>what?[assistant]cats"


def test_contents_of_text_parts_are_joined_for_a_template_of_texts():
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]
    template = ChatTemplate(CHATML, tokens={})
    assert template.render([{"role": "user", "content": parts}]) == template.render(
        [{"role": "user", "content": "a b"}]
    )


def test_a_template_of_texts_refuses_images():
    with pytest.raises(InvalidRequest, match="chat template"):
        ChatTemplate(CHATML, tokens={}).render(SEEN)


def test_a_template_of_parts_renders_tool_calls_as_text():
    called = {"role": "assistant", "content": "", "tool_calls": [tool_call("find", {"q": 1})]}
    result = {"role": "tool", "content": "done", "tool_call_id": "call_1"}
    rendering = ChatTemplate(PARTS, tokens={}).render([SEEN[1], called, result])
    assert "<image><image>what?" in rendering
    assert "find" in rendering
    assert "done" in rendering


FORMATTED = {
    "{{ '{} {}'.format('a', 1) }}": "a 1",
    "{{ '{1}-{0}-{1}'.format('a', 'b') }}": "b-a-b",
    "{{ '{x:>5}|{y:03d}|{z:.2f}|{y:,}'.format(x='a', y=7, z=1.5) }}": "    a|007|1.50|7",
    "{{ '{:*^5}{!r}'.format('a', 'b') }}": "**a**'b'",
    "{{ '<|{}|>\n{{literal}}'.format(messages[0].role) }}": "<|user|>\n{literal}",
    "{{ '{}{}'.format(none, nope) }}": "None",
    "{{ '{}'.format([1, {'a': 'b'}]) }}": "[1, {'a': 'b'}]",
    "{{ '{a}{b}'.format_map({'a': 'x', 'b': 2}) }}": "x2",
    "{{ '%s is %d%% of %(y)s' % {'y': 1} if false else '%s is %03d%%' % ('a', 5) }}": "a is 005%",
    "{{ '%(x)s%(x)s' % {'x': 1} }}": "11",
    "{{ '%s-%s'|format('a', 2) }}": "a-2",
    "{{ '%(a)s'|format(a='b') }}": "b",
    "{{ 'a'.center(5, '*') ~ 'a'.ljust(3) ~ 'a'.rjust(3) ~ '7'.zfill(3) }}": "**a**a    a007",
    "{{ 'a\tb'.expandtabs(4) }}": "a   b",
    "{{ [1, 2, 3]|sum }} {{ [{'n': 1}, {'n': 2}]|sum(attribute='n') }} {{ 2.567|round(2) }}": (
        "6 3 2.57"
    ),
}


@pytest.mark.parametrize(("source", "text"), FORMATTED.items())
def test_values_are_formatted_as_by_jinja(source, text):
    assert rendered(source) == text
    theirs, _ = render_jinja_template(
        conversations=[[{"role": "user", "content": "hi"}]], chat_template=source
    )
    assert theirs[0] == text


@pytest.mark.parametrize(
    "source", ["{{ '{}'.format() }}", "{{ '{x}'.format(1) }}", "{{ '{'.format(1) }}"]
)
def test_a_wrong_format_is_an_error_in_one_sentence(source):
    with pytest.raises(InvalidRequest, match="fails on these messages") as caught:
        rendered(source)
    assert "\n" not in str(caught.value)


def test_a_template_may_add_special_tokens_that_the_model_does_not_have():
    assert rendered("{{ bos_token + messages[0].content + eos_token }}") == "hi"


NO_SYSTEM = """
{%- for message in messages %}
    {%- if message.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {{- '[' + message.role + ']' + message.content }}
{%- endfor %}
"""
"""As those of Gemma and of Mistral's first models."""
IGNORES_SYSTEM = (
    "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endif %}"
    "{% endfor %}"
)


def turns(*written):
    roles = {"S": "system", "U": "user", "A": "assistant"}
    return [{"role": roles[one[0]], "content": one[1:]} for one in written]


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (turns("Ube", "Aok"), "[user]be[assistant]ok"),
        (turns("Sbe kind", "Uhi"), "[user]be kind\n\nhi"),
        (turns("Sa", "Sb", "Uhi"), "[user]a\n\nb\n\nhi"),
        (turns("Sbe", "Uhi", "Aok", "Unow"), "[user]be\n\nhi[assistant]ok[user]now"),
        (turns("Uhi", "Aok", "Sbe", "Unow"), "[user]hi[assistant]ok[user]be\n\nnow"),
        (turns("Uhi", "Aok", "Sgo on"), "[user]hi[assistant]ok[user]go on"),
        (turns("Ua", "Ub", "Aok", "Aand", "Uc"), "[user]a\n\nb[assistant]ok\n\nand[user]c"),
        (turns("Sbe", "Ua", "Ub"), "[user]be\n\na\n\nb"),
        (turns("Sbe"), "[user]be"),
    ],
)
def test_a_template_for_two_gets_what_the_others_say_in_their_messages(messages, text):
    template = ChatTemplate(NO_SYSTEM, tokens={})
    assert template.render(messages) == text
    assert template.problem is None


def test_a_system_message_that_a_template_leaves_out_is_not_lost():
    messages = turns("Sbe kind", "Uhi", "Aok")
    rendering = ChatTemplate(IGNORES_SYSTEM, tokens={}).render(messages)
    assert rendering == "[user]be kind\n\nhi[assistant]ok"


def test_several_system_messages_are_one_for_a_template_that_knows_the_first():
    """gptme sends three, Claude Code some within the conversation."""
    messages = turns("Sa", "Sb", "Uhi", "Aok", "Sc", "Unow")
    template = ChatTemplate(MISTRAL, tokens=TOKENS)
    merged = turns("Sa\n\nb", "Uhi", "Aok", "Uc\n\nnow")
    assert template.render(messages) == template.render(merged)


KEEPS_ONE_SYSTEM = (
    "{% for m in messages if m.role == 'system' %}{% if loop.last %}[system]{{ m.content }}{% endif %}"
    "{% endfor %}{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)


def test_no_system_message_is_lost_where_a_template_keeps_one():
    template = ChatTemplate(KEEPS_ONE_SYSTEM, tokens={})
    messages = turns("Sa", "Sb", "Uhi", "Aok", "Sc", "Unow")
    assert template.render(messages) == "[system]a\n\nb[user]hi[assistant]ok[user]c\n\nnow"
    assert template.render(turns("Sa", "Uhi")) == "[system]a[user]hi"
    several = ChatTemplate(CHATML, tokens={}).render(messages)
    assert several.count("<|im_start|>system") == 3  # a template that takes them gets them


def test_images_stay_in_a_message_that_takes_up_the_system_message():
    source = PARTS.replace(
        "{% for part",
        "{% if m['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}{% for part",
    )
    rendering = ChatTemplate(source, tokens={}).render(SEEN, add_generation_prompt=False)
    assert rendering == "[user]look\n\n<image><image>what?[assistant]cats"


def test_what_no_form_helps_is_still_rejected_in_the_templates_words():
    with pytest.raises(InvalidRequest, match="rejects these messages: Conversation roles must"):
        ChatTemplate(NO_SYSTEM, tokens={}).render(turns("Ahi", "Uok"))


VARIABLES = (
    "{{ bos_token }}{% set own = 1 %}{% for message in messages %}{{ message.content }}{% endfor %}"
    "{% if tools %}TOOLS{% endif %}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}"
    "{{ effort }}{{ own }}"
)


def test_a_template_gets_the_variables_that_it_reads():
    template = ChatTemplate(VARIABLES, tokens=TOKENS)
    variables = {"enable_thinking": False, "effort": "low", "unknown": 1}
    text = template.render([{"role": "user", "content": "x"}], variables=variables)
    assert text == "<s>xFalselow1"


def test_no_variable_replaces_what_is_the_templates_own():
    template = ChatTemplate(VARIABLES, tokens=TOKENS)
    names = ("messages", "tools", "documents", "add_generation_prompt", "bos_token", "range", "own")
    taken = {name: ["y"] for name in names}
    messages = [{"role": "user", "content": "x"}]
    assert template.render(messages, variables=taken) == template.render(messages)


def test_a_variable_that_is_no_name_has_no_effect():
    template = ChatTemplate(VARIABLES, tokens=TOKENS)
    messages = [{"role": "user", "content": "x"}]
    names = ("", "a b", "self", "__class__", "context")
    assert template.render(messages, variables=dict.fromkeys(names, 1)) == template.render(messages)


def test_variables_cost_no_second_reading_of_the_source(monkeypatch):
    read = []
    parse = TemplateSandbox._parse

    def counted(self, source, *names):
        read.append(source)
        return parse(self, source, *names)

    monkeypatch.setattr(TemplateSandbox, "_parse", counted)
    template = ChatTemplate(VARIABLES, tokens=TOKENS)
    template.render([{"role": "user", "content": "x"}], variables={"effort": "low"})
    assert read == [VARIABLES]


def test_tokens_that_a_model_lacks_are_empty_texts():
    source = "{{ bos_token + unk_token + pad_token + eos_token }}{{ messages[0].content }}"
    text = ChatTemplate(source, tokens={"bos_token": "<s>"}).render(turns("Uhi"))
    assert text == "<s>hi"
