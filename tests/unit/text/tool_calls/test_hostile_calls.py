"""Arguments that are programs: every parser reads them as text, at once."""

import json
import sys

import pytest

from engine.text.tool_calls.choosing import FORMS, new_parser
from tests.fakes.parsed_answer import TOOLS, read_parts

PROGRAMS = [
    "__import__('os').system('echo harmless')",
    "open('/etc/passwd').read()",
    "(lambda: 1)()",
    "[x for x in ().__class__.__base__.__subclasses__()]",
    "f'{1+1}'",
    "1 if True else exit()",
    "{{ 7*7 }}",
    "${jndi:ldap://127.0.0.1/x}",
    "9**9**9**9",
]
WRITTEN = {
    "qwen-xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\n{}\n</parameter>\n</function>",
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    "llama-python": "[get_weather(city={})]",
    "lfm2": "<|tool_call_start|>[get_weather(city={})]<|tool_call_end|>",
    "olmo": "<function_calls>get_weather(city={})</function_calls>",
    "gemma4": "<|tool_call>call:get_weather{{city:{}}}<tool_call|>",
    "hermes": '<tool_call>\n{{"name": "get_weather", "arguments": {{"city": {}}}}}\n</tool_call>',
    "generic": "```tool_code\nget_weather(city={})\n```",
}
DANGEROUS = ("compile", "exec", "import", "open", "os.system", "subprocess.Popen", "socket.connect")
watched = []


def audit(event, _):
    if watched and event in DANGEROUS:
        watched.append(event)


sys.addaudithook(audit)  # cannot be removed; it does nothing unless a test watches


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("form", WRITTEN)
def test_no_argument_is_executed(form, program):
    answer = WRITTEN[form].format(program)
    parser = new_parser(FORMS[form], TOOLS, parallel=True)
    watched.append("begin")
    try:
        parts = [*parser.feed(answer), *parser.finish()]
    finally:
        seen = watched[1:]
        watched.clear()
    assert seen == []
    found = read_parts(parts)
    calls = [one for one in found if isinstance(one, tuple)]
    if form in ("qwen-xml", "glm"):
        assert json.loads(calls[0][1]) == {"city": program}
    for _, arguments in calls:
        json.loads(arguments)  # whatever could be read of it
    assert calls or found == [answer]


def test_the_test_would_notice():
    watched.append("begin")
    try:
        eval("1 + 1")
    finally:
        seen = watched[1:]
        watched.clear()
    assert seen


ENDLESS = ("[", "{", "<tool_call>", "`", "<function=", "get_weather(", "[get_weather(city=[",
           '{"name": "get_weather", "arguments": {"a": ', "\\", "[TOOL_CALLS]", "<|channel|>", "<",
           "</parameter>", "<|tool_call>call:get_weather{city:", "functools[", "\n```json\n")  # fmt: skip


def steps(form, text):
    """How many functions and generators run while an answer is read; it does not depend on the machine."""
    parser, count = new_parser(FORMS[form], TOOLS, parallel=True), 0

    def profile(frame, event, argument):
        nonlocal count
        count += 1

    sys.setprofile(profile)
    try:
        for start in range(0, len(text), 7):
            parser.feed(text[start : start + 7])
        parser.finish()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", FORMS)
def test_no_answer_takes_more_than_linear_work(form):
    """Four times the text takes a quadratic reader sixteen times the steps."""
    for piece in ENDLESS:
        few, many = steps(form, piece * 60), steps(form, piece * 240)
        assert many < 6 * few + 2000, piece
