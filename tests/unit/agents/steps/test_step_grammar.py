"""The grammar of a step: exactly the calls that are possible now."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.steps.bounded_schema import Bounds, bounded_schema
from agents.steps.step_grammar import Action, Argument, step_grammar
from tests.fakes.scripted_client import accepts

ANSWER = bounded_schema(
    {"type": "object", "properties": {"text": {"type": "string"}}}, Bounds(40, 2)
)
TEXT = {"type": "string", "maxLength": 20}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 9}
PATH = Argument("path", {"type": "string"}, values=("a.py", 'b "é".py'))
LINE = Argument("start", NUMBER, required=False, is_line=True)


def step(name, input_, thought=None):
    begin = "" if thought is None else f'"thought": {json.dumps(thought)}, '
    shown = json.dumps(input_, ensure_ascii=False)
    return f'{{{begin}"action": "{name}", "input": {shown}}}'


def grammar_of(*actions, thought=False):
    return step_grammar(actions, ANSWER, thought=thought)[0]


def test_only_offered_tools_can_be_called():
    grammar = grammar_of(Action("read", (PATH,)))
    assert accepts(grammar, step("read", {"path": "a.py"}))
    assert not accepts(grammar, step("grep", {"path": "a.py"}))


def test_only_existing_values_can_be_named():
    grammar = grammar_of(Action("read", (PATH,)))
    assert accepts(grammar, step("read", {"path": 'b "é".py'}))
    assert not accepts(grammar, step("read", {"path": "c.py"}))


def test_line_numbers_end_with_their_file():
    read = Action("read", (PATH, LINE), lines={"a.py": 12, 'b "é".py': 3})
    grammar = grammar_of(read)
    assert accepts(grammar, step("read", {"path": "a.py", "start": 12}))
    assert not accepts(grammar, step("read", {"path": "a.py", "start": 13}))
    assert not accepts(grammar, step("read", {"path": "a.py", "start": 0}))
    assert not accepts(grammar, step("read", {"path": 'b "é".py', "start": 4}))


def test_a_value_used_alone_is_not_offered_alone_again():
    read = Action("read", (PATH, LINE), frozenset({"a.py"}), {"a.py": 12, 'b "é".py': 3})
    grammar = grammar_of(read)
    assert not accepts(grammar, step("read", {"path": "a.py"}))
    assert accepts(grammar, step("read", {"path": "a.py", "start": 2}))
    assert accepts(grammar, step("read", {"path": 'b "é".py'}))


@given(
    used=st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20
    )
)
def test_used_free_text_is_excluded_and_longer_text_is_not(used):
    grep = Action("grep", (Argument("pattern", TEXT),), frozenset({used}))
    grammar = grammar_of(grep)
    assert not accepts(grammar, step("grep", {"pattern": used}))
    if len(used) < 20:
        assert accepts(grammar, step("grep", {"pattern": used + "x"}))


def test_an_action_without_a_possible_call_is_left_out():
    used = Action("read", (PATH,), frozenset(PATH.values))
    none = Action("status", (), frozenset({None}))
    grammar = grammar_of(used, none)
    assert not accepts(grammar, step("read", {"path": "a.py"}))
    assert not accepts(grammar, step("status", {}))
    assert accepts(grammar, step("final_answer", {}).replace("{}", '{"text":"done"}'))
    assert accepts(grammar_of(Action("status")), step("status", {}))


def test_required_arguments_cannot_be_left_out():
    edit = Action("edit", (PATH, Argument("text", TEXT), LINE))
    grammar = grammar_of(edit)
    assert accepts(grammar, step("edit", {"path": "a.py", "text": "x"}))
    assert accepts(grammar, step("edit", {"path": "a.py", "text": "x", "start": 3}))
    assert not accepts(grammar, step("edit", {"path": "a.py"}))


def test_optional_arguments_alone_may_be_left_out():
    listing = Action("list", (Argument("folder", TEXT, required=False), LINE))
    grammar = grammar_of(listing)
    for given_ in ({}, {"folder": "src"}, {"folder": "src", "start": 1}):
        assert accepts(grammar, step("list", given_))


def test_thoughts_are_bounded():
    grammar = grammar_of(Action("read", (PATH,)), thought=True)
    assert accepts(grammar, step("read", {"path": "a.py"}, thought="x" * 200))
    assert not accepts(grammar, step("read", {"path": "a.py"}, thought="x" * 201))
    assert not accepts(grammar, step("read", {"path": "a.py"}))


@pytest.mark.parametrize("thought", [False, True])
def test_the_longest_step_has_at_most_the_declared_length(thought):
    read = Action("read", (PATH, Argument("text", TEXT, required=False)))
    grammar, longest = step_grammar([read], ANSWER, thought=thought)
    begin = f'"thought": "{"€" * 200}", ' if thought else ""
    widest = step("read", {"path": 'b "é".py', "text": "😀" * 20})
    widest = "{" + begin + widest.removeprefix("{")
    assert accepts(grammar, widest)
    assert len(widest) <= longest
