"""Equal arguments have equal texts, and no text is an error."""

import pytest

from engine.text.tool_calls.canonical_arguments import canonical_arguments


def test_equal_arguments_have_equal_texts():
    assert canonical_arguments('{"b": 1, "a": "é"}') == canonical_arguments({"a": "é", "b": 1})
    assert canonical_arguments('{"a": 1}') != canonical_arguments('{"a": 2}')


@pytest.mark.parametrize(
    "text",
    ["", "{", "no JSON", "[" * 5_000 + "]" * 5_000],
    ids=["empty", "begun", "prose", "deep"],
)
def test_text_that_cannot_be_read_stays_as_it_is(text):
    assert canonical_arguments(text) == text
