"""The parsers of calls under random answers: how the text arrives does not matter, and nothing is lost."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.text.chat_template import ChatTemplate
from engine.text.tool_calls.choosing import FORMS, new_parser
from tests.fakes.family_templates import BY_FORM
from tests.fakes.parsed_answer import TOOLS, parts_of, read_parts
from tests.fakes.tool_template import tool_call
from tests.unit.text.tool_calls.test_answers import ANY_FORM, NO_CALLS, OWN_FORMS

FRAGMENTS = sorted(
    {text for text, _ in ANY_FORM}
    | set(NO_CALLS)
    | {text for _, text, _ in OWN_FORMS}
    | {mark for form in FORMS.values() for mark in (*form.marks, *form.openings)}
    | {"{", "}", "[", "]", '"', "'", "```", "\n", " ", ",", ":", "\\", "\\u", "name", "arguments"}
    | {"get_weather", "get_time", '"name": "get_weather"', '"arguments": {', "</parameter>", "é", "😀"}
)  # fmt: skip


def cut_anywhere(text):
    """A text that may lose its end or its beginning."""
    return st.builds(
        lambda begin, end: text[begin : len(text) - end],
        st.integers(0, 4),
        st.integers(0, max(0, len(text) - 1)),
    )


FRAGMENT = st.one_of(
    st.sampled_from(FRAGMENTS),
    st.sampled_from(FRAGMENTS).flatmap(cut_anywhere),
    st.text(max_size=4),
)
ANSWERS = st.lists(FRAGMENT, max_size=8).map("".join)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=6), JSON, max_size=4)


NAMED_TWICE = (
    '{"tool_call": {"name": {"name": "get_weather", "arguments": {"city": "Paris"}}}'
    '"name": "get_weather"'
)
"""An object with a call in it, and with a name of its own after it."""


@st.composite
def cut_answers(draw):
    """An answer and the pieces in which it arrives."""
    text = draw(ANSWERS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    borders = [0, *cuts, len(text)]
    return text, [text[a:b] for a, b in pairwise(borders)]


def calls_of(found):
    return [one for one in found if isinstance(one, tuple) and one[0] != "reasoning"]


@pytest.mark.parametrize("name", sorted(FORMS))
@settings(max_examples=80, deadline=None)
@given(cut_answers())
@example((NAMED_TWICE, [NAMED_TWICE]))
def test_any_division_of_any_answer_gives_the_same_parts(name, given_answer):
    text, pieces = given_answer
    form = FORMS[name]
    whole = read_parts(parts_of(new_parser(form, TOOLS, parallel=True), [text]))
    assert read_parts(parts_of(new_parser(form, TOOLS, parallel=True), pieces)) == whole
    for _, arguments in calls_of(whole):
        assert isinstance(json.loads(arguments), dict)
    if name != "harmony" and not calls_of(whole):
        assert "".join(whole) == text


@pytest.mark.parametrize("name", sorted(set(FORMS) - {"harmony"}))
@settings(max_examples=40, deadline=None)
@given(ANSWERS)
def test_without_tools_of_these_names_an_answer_is_its_text(name, text):
    assert "".join(read_parts(parts_of(new_parser(FORMS[name], {}, parallel=True), [text]))) == text


@settings(max_examples=150, deadline=None)
@given(ARGUMENTS, st.sampled_from([None, 1, 4]), st.booleans())
def test_arguments_as_json_are_passed_on_unchanged(arguments, indent, ascii_only):
    written = json.dumps(arguments, indent=indent, ensure_ascii=ascii_only)
    text = f'{{"name": "get_time", "arguments": {written}}}'
    ((name, found),) = read_parts(
        parts_of(new_parser(FORMS["hermes"], TOOLS, parallel=True), [text])
    )
    assert (name, found) == ("get_time", written)


@settings(max_examples=150, deadline=None)
@given(ARGUMENTS)
def test_arguments_as_json_text_are_read(arguments):
    text = json.dumps({"name": "get_time", "arguments": json.dumps(arguments)})
    ((_, found),) = read_parts(parts_of(new_parser(FORMS["hermes"], TOOLS, parallel=True), [text]))
    assert json.loads(found) == arguments


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["query", "note"]), JSON, min_size=1))
def test_arguments_as_python_are_read(arguments):
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    text = f"[search-files({written})]"
    ((_, found),) = read_parts(
        parts_of(new_parser(FORMS["llama-python"], TOOLS, parallel=True), [text])
    )
    assert json.loads(found) == arguments


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30))
def test_a_text_in_tags_is_read_as_it_stands(value):
    text = f"<function=get_weather>\n<parameter=city>\n{value}\n</parameter>\n</function>"
    ((_, found),) = read_parts(
        parts_of(new_parser(FORMS["qwen-xml"], TOOLS, parallel=True), [text])
    )
    assert json.loads(found) == {"city": value}


def after_common(one, other):
    """The rest of the other text after what both begin with."""
    at = 0
    while at < len(one) and one[at] == other[at : at + 1]:
        at += 1
    return other[at:]


ROUND_TRIPS = [
    name for name in BY_FORM if name not in {"harmony", "lfm2", "phi4", "granite", "generic"}
]
"""The others' templates render no calls; Harmony's answers begin inside a header (`test_answers`)."""
VALUES = {
    "query": st.text(max_size=12),
    "limit": st.integers(-5, 5),
    "deep": st.booleans(),
    "paths": st.lists(st.text(max_size=5), max_size=2),
    "options": st.dictionaries(st.text(max_size=4), JSON, max_size=2),
}
TYPED = st.fixed_dictionaries({}, optional=VALUES)
"""Arguments of `search-files` as its schema says: in some forms the type is nowhere else."""


@pytest.mark.parametrize("name", ROUND_TRIPS)
@settings(max_examples=40, deadline=None)
@given(st.lists(TYPED, min_size=1, max_size=2), st.data())
def test_what_a_template_writes_is_read_back_however_it_arrives(name, arguments, data):
    calls = [
        tool_call("search-files", one, f"call_{number}") for number, one in enumerate(arguments)
    ]
    template = ChatTemplate(BY_FORM[name], tokens={"bos_token": "", "eos_token": ""})
    before = [{"role": "user", "content": "Look."}]
    if not template.renders_several_calls:
        calls = calls[:1]
    asked = template.render(before)
    answer = {"role": "assistant", "content": "", "tool_calls": calls}
    whole = template.render([*before, answer], add_generation_prompt=False)
    text = after_common(asked, whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    borders = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in pairwise(borders)]
    found = read_parts(parts_of(new_parser(FORMS[name], TOOLS, parallel=True), pieces))
    assert [(called, json.loads(written)) for called, written in calls_of(found)] == [
        ("search-files", one["function"]["arguments"]) for one in calls
    ]
