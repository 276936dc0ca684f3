"""The chat templates of families are rendered as transformers renders them, and recognised."""

import json
from datetime import datetime
from itertools import product
from pathlib import Path

import pytest
from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

from engine.api.tools import Tool
from engine.text.chat_template import ChatTemplate
from engine.text.end_of_turn import end_ids
from engine.text.reasoning_markers import markers_of
from engine.text.template_sandbox import TemplateSandbox
from engine.text.tool_calls.choosing import form_of_template
from engine.text.tool_messages import template_tools, uses_tools
from tests.fakes.tool_template import tool_call

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
NOW = datetime(2026, 2, 3, 4, 5, 6)
SOURCES = {
    path.stem: path.read_bytes().decode()
    for path in sorted(Path(__file__).parents[2].glob("fakes/chat_templates/*.jinja"))
}
KNOWN = {
    "gemma-3": {"parts"},
    "gemma-4": {"tools", "calls", "parallel", "parts"},
    "glm-4.6": {"tools", "calls", "parallel", "parts"},
    "gpt-oss": {"tools", "calls"},
    "granite-3.3": {"tools"},
    "granite-4": {"tools", "calls", "parallel", "parts"},
    "lfm2": {"tools"},
    "lfm2.5": {"tools", "calls", "parallel", "parts"},
    "ministral-3": {"tools", "calls", "parallel", "parts"},
    "mistral-small-3.2": {"tools", "calls", "parallel", "parts"},
    "nemotron-3": {"tools", "calls", "parallel"},
    "olmo-2": set(),
    "olmo-3": {"tools", "calls", "parallel"},
    "phi-4": set(),
    "phi-4-mini": set(),
    "qwen3": {"tools", "calls", "parallel"},
    "qwen3-next": {"tools", "calls", "parallel"},
    "qwen3.5": {"tools", "calls", "parallel", "parts"},
    "smollm3": set(),
}
"""What a template renders by itself: tools, calls, several of them in a message, contents in parts."""

SYSTEM = {"role": "system", "content": "Be <brief> & kind."}
USER = {"role": "user", "content": "  Wie geht's?\n"}
ANSWER = {"role": "assistant", "content": "Gut, 日本!"}
NEXT = {"role": "user", "content": 'And "then"?'}
EMPTY = {"role": "assistant", "content": ""}
REASONED = {**ANSWER, "reasoning_content": "Hm, let me think.\nYes."}
ARGUMENTS = {"city": "Köln", "days": 2, "flag": True, "list": [1, "a"], "none": None}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [tool_call("weather", ARGUMENTS, "abcDEF123")],
}
CALL_WITH_TEXT = {**CALL, "content": "I look."}
REASONED_CALL = {**CALL, "reasoning_content": "The weather is needed."}
CALLS = {**CALL, "tool_calls": [*CALL["tool_calls"], tool_call("time", {}, "abcDEF124")]}
RESULT = {"role": "tool", "content": "sunny", "tool_call_id": "abcDEF123", "name": "weather"}
RESULT_2 = {"role": "tool", "content": '{"h": 3}', "tool_call_id": "abcDEF124", "name": "time"}
PARTS = {
    "role": "user",
    "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}],
}
CONVERSATIONS = {
    "user": [USER],
    "system": [SYSTEM, USER],
    "turns": [SYSTEM, USER, ANSWER, NEXT],
    "reasoning": [USER, REASONED, NEXT],
    "reasoning of the last message": [USER, REASONED],
    "reasoning in the text": [USER, {**ANSWER, "content": "<think>\nhm\n</think>\n\nGut"}, NEXT],
    "no reasoning": [USER, {**ANSWER, "reasoning_content": ""}, NEXT],
    "empty answer": [USER, EMPTY, NEXT],
    "empty last answer": [USER, EMPTY],
    "call": [SYSTEM, USER, CALL, RESULT],
    "call and answer": [SYSTEM, USER, CALL, RESULT, ANSWER, NEXT],
    "call after text": [USER, CALL_WITH_TEXT, RESULT],
    "call after reasoning": [USER, REASONED_CALL, RESULT],
    "call after reasoning and answer": [USER, REASONED_CALL, RESULT, REASONED, NEXT],
    "calls": [USER, CALLS, RESULT, RESULT_2],
    "calls and answer": [USER, CALLS, RESULT, RESULT_2, ANSWER, NEXT],
    "parts": [PARTS],
}
TOOLS = template_tools(
    [
        Tool(
            "weather",
            'Weather of a "city"',
            {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Its name"},
                    "days": {"type": "integer", "default": 1},
                    "unit": {"type": "string", "enum": ["C", "F"]},
                    "list": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["city"],
            },
        ),
        Tool("time", "Now", {"type": "object", "properties": {}}),
    ]
)
VARIABLES = (
    {},
    {"enable_thinking": False},
    {"enable_thinking": True},
    {"reasoning_effort": "high"},
)


@pytest.fixture(autouse=True)
def now(monkeypatch):
    class Clock(datetime):
        @classmethod
        def now(cls):
            return NOW

    monkeypatch.setattr(chat_template_utils, "datetime", Clock)


def template(name):
    return ChatTemplate(SOURCES[name], tokens=TOKENS, sandbox=TemplateSandbox(now=lambda: NOW))


def theirs(name, conversation, tools, add_generation_prompt, variables):
    rendered, _ = render_jinja_template(
        conversations=[conversation],
        tools=tools or None,
        chat_template=SOURCES[name],
        add_generation_prompt=add_generation_prompt,
        **TOKENS,
        **variables,
    )
    return rendered[0]


def needs(conversation, tools=()):
    needed = {"tools"} if tools else set()
    if uses_tools(conversation):
        needed.add("calls")
    if any(len(one.get("tool_calls", ())) > 1 for one in conversation):
        needed.add("parallel")
    if any(not isinstance(one["content"], str) for one in conversation):
        needed.add("parts")
    if EMPTY in conversation:
        needed.add("empty answers")
    return needed


def test_every_template_is_compared():
    assert set(SOURCES) == set(KNOWN)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", KNOWN)
def test_text_is_what_transformers_renders(name, conversation):
    messages = CONVERSATIONS[conversation]
    ours = template(name)
    for tools, prompt, variables in product(((), TOOLS), (True, False), VARIABLES):
        known = KNOWN[name] | ({"empty answers"} if name != "ministral-3" else set())
        if needs(messages, tools) <= known:
            text = ours.render(
                messages, tools=tools, add_generation_prompt=prompt, variables=variables
            )
            assert text == theirs(name, messages, tools, prompt, variables)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", KNOWN)
def test_what_a_template_does_not_know_is_written_all_the_same(name, conversation):
    messages = CONVERSATIONS[conversation]
    text = template(name).render(messages, tools=TOOLS)
    for message in messages:
        if message["role"] in ("user", "system"):
            content = message["content"]
            parts = [content] if isinstance(content, str) else [one["text"] for one in content]
            assert all(part.strip() in text for part in parts)
        for call in message.get("tool_calls", ()):
            assert call["function"]["name"] in text.partition("sunny")[0]
        if message["role"] == "tool":
            written = message["content"]
            assert written in text or json.dumps(written) in text
    assert "weather" in text
    assert "Its name" in text


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("gemma-3", "generic"),
        ("gemma-4", "gemma4"),
        ("glm-4.6", "glm"),
        ("gpt-oss", "harmony"),
        ("granite-3.3", "granite"),
        ("granite-4", "hermes"),
        ("lfm2", "lfm2"),
        ("lfm2.5", "lfm2"),
        ("ministral-3", "mistral-args"),
        ("mistral-small-3.2", "mistral-args"),
        ("nemotron-3", "qwen-xml"),
        ("olmo-2", "generic"),
        ("olmo-3", "olmo"),
        ("phi-4", "generic"),
        ("phi-4-mini", "phi4"),
        ("qwen3", "hermes"),
        ("qwen3-next", "hermes"),
        ("qwen3.5", "qwen-xml"),
        ("smollm3", "generic"),  # ours, which is as its own: the edited template writes no tools
    ],
)
def test_the_form_of_calls_is_the_familys(name, form):
    assert form_of_template(SOURCES[name]).name == form


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("gemma-3", None),
        ("gemma-4", "<|channel>thought"),
        ("glm-4.6", "<think>"),
        ("gpt-oss", "<|channel|>analysis<|message|>"),
        ("granite-3.3", "<think>"),
        ("granite-4", None),
        ("lfm2", None),
        ("lfm2.5", "<think>"),
        ("ministral-3", "[THINK]"),
        ("mistral-small-3.2", None),
        ("nemotron-3", "<think>"),
        ("olmo-2", None),
        ("olmo-3", "<think>"),
        ("phi-4", None),
        ("phi-4-mini", None),
        ("qwen3", "<think>"),
        ("qwen3-next", "<think>"),
        ("qwen3.5", "<think>"),
        ("smollm3", "<think>"),
    ],
)
def test_the_marks_of_reasoning_are_the_familys(name, opening):
    markers = markers_of(SOURCES[name])
    assert (markers and markers.opening) == opening


@pytest.mark.parametrize(
    ("name", "control", "ends"),
    [
        ("gemma-3", ["<end_of_turn>", "<start_of_turn>", "<unused0>"], ["<end_of_turn>"]),
        ("gemma-4", ["<turn|>", "<|turn>", "<|tool_response>"], ["<turn|>", "<|tool_response>"]),
        (
            "glm-4.6",
            ["<|endoftext|>", "<|user|>", "<|observation|>", "<|assistant|>"],
            ["<|endoftext|>", "<|user|>", "<|observation|>"],
        ),
        ("gpt-oss", ["<|return|>", "<|call|>", "<|end|>", "<|start|>"], ["<|return|>", "<|call|>"]),
        (
            "granite-4",
            ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"],
            ["<|end_of_text|>"],
        ),
        ("lfm2", ["<|im_end|>", "<|im_start|>", "<|tool_call_end|>"], ["<|im_end|>"]),
        ("mistral-small-3.2", ["</s>", "[INST]"], ["</s>"]),
        ("nemotron-3", ["<|im_end|>", "<|im_start|>"], ["<|im_end|>"]),
        ("olmo-3", ["<|im_end|>", "<|endoftext|>"], ["<|im_end|>", "<|endoftext|>"]),
        ("phi-4", ["<|im_end|>", "<|im_sep|>"], ["<|im_end|>"]),
        ("phi-4-mini", ["<|end|>", "<|endoftext|>"], ["<|end|>", "<|endoftext|>"]),
    ],
)
def test_the_ends_of_a_turn_are_known_although_the_file_declares_none(name, control, ends):
    special = {text: number for number, text in enumerate(control)}
    assert end_ids([], special, SOURCES[name]) == {special[text] for text in ends}


def test_reasoning_and_text_before_a_call_are_one_text_where_the_template_takes_one():
    both = {**REASONED_CALL, "content": "I look."}
    text = template("gpt-oss").render([USER, both, RESULT])
    assert "analysis<|message|>The weather is needed.\n\nI look.<|end|>" in text


def test_reasoning_before_several_calls_is_written_once():
    calls = {**CALLS, "reasoning_content": "Both are needed."}
    text = template("gpt-oss").render([USER, calls, RESULT, RESULT_2])
    assert text.count("Both are needed.") == 1
    assert text.index("functions.weather") < text.index("sunny") < text.index("functions.time")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "lfm2",
            '<|tool_call_start|>[weather(city="Köln", days=2, flag=True, list=[1, "a"], none=None), '
            "time()]<|tool_call_end|>",
        ),
        (
            "granite-3.3",
            '<|tool_call|>[{"name": "weather", "arguments": {"city": "Köln", "days": 2, "flag": true, '
            '"list": [1, "a"], "none": null}}, {"name": "time", "arguments": {}}]',
        ),
    ],
)
def test_calls_that_a_template_leaves_out_are_written_in_its_form(name, call):
    text = template(name).render(
        [USER, {**CALLS, "content": "I look."}, RESULT, RESULT_2], tools=TOOLS
    )
    assert "I look." + call in text
    shown = template(name).render([USER, ANSWER, RESULT, RESULT_2], tools=TOOLS)
    assert text[text.index(call) + len(call) :] == shown[shown.index("日本!") + 3 :]


def test_tools_stand_in_the_system_message_where_the_template_looks_for_them():
    functions = json.dumps([tool["function"] for tool in TOOLS], ensure_ascii=False)
    text = template("phi-4-mini").render([USER], tools=TOOLS)
    assert text.startswith(f"<|system|><|tool|>{functions}<|/tool|><|end|>")
    told = template("phi-4-mini").render([SYSTEM, USER], tools=TOOLS)
    assert told.startswith(f"<|system|>{SYSTEM['content']}<|tool|>{functions}<|/tool|>")


def test_built_in_tools_of_gpt_oss_and_the_date_are_written():
    variables = {"builtin_tools": ["browser", "python"]}
    text = template("gpt-oss").render([USER], variables=variables)
    assert text == theirs("gpt-oss", [USER], (), True, variables)
    assert "Current date: 2026-02-03" in text
    assert "namespace browser" in text


@pytest.mark.parametrize(
    ("name", "variables", "begun"),
    [
        ("gemma-4", {}, False),
        ("gemma-4", {"enable_thinking": True}, None),
        ("glm-4.6", {}, None),
        ("glm-4.6", {"enable_thinking": False}, False),
        ("gpt-oss", {}, None),
        ("nemotron-3", {}, True),
        ("nemotron-3", {"enable_thinking": False}, False),
        ("olmo-3", {}, True),
        ("qwen3", {}, None),
        ("qwen3", {"enable_thinking": False}, False),
        ("qwen3-next", {}, True),
        ("qwen3.5", {}, True),
        ("qwen3.5", {"enable_thinking": False}, False),
        ("smollm3", {}, None),
        ("smollm3", {"enable_thinking": False}, False),
    ],
)
def test_it_is_known_whether_the_prompt_begins_or_leaves_out_the_reasoning(name, variables, begun):
    """None: the answer itself may begin it."""
    text = template(name).render([USER], variables=variables)
    assert markers_of(SOURCES[name]).begun_in(text[text.rindex("Wie geht's?") :]) is begun
