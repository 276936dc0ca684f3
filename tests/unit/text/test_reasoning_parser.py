"""Reasoning is divided from the text, wherever the pieces of an answer end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.answer_parts import AnswerReasoning, AnswerText
from engine.text.answer_parser import PlainText
from engine.text.chat_template import CHATML
from engine.text.reasoning_markers import ReasoningMarkers, markers_of
from engine.text.reasoning_parser import ReasoningParser
from engine.text.reasoning_tokens import ReasoningTokens

MARKERS = ReasoningMarkers("<think>", "</think>")


def parsed(pieces, *, begun=False, markers=MARKERS):
    parser = ReasoningParser(markers, PlainText(), begun=begun)
    parts = [part for piece in pieces for part in parser.feed(piece)] + [*parser.finish()]
    assert all(part.text for part in parts)
    kinds = [type(part) for part in parts]
    assert kinds == sorted(kinds, key=[AnswerReasoning, AnswerText].index)
    return tuple(
        "".join(part.text for part in parts if isinstance(part, kind))
        for kind in (AnswerReasoning, AnswerText)
    )


CASES = {
    "begun by the prompt": (True, "\nHm.\n</think>\n\nYes.", ("Hm.", "Yes.")),
    "begun by the answer": (False, "<think>\nHm.\n</think>\n\nYes.", ("Hm.", "Yes.")),
    "a line feed before the marker": (False, "\n<think>Hm.</think>Yes.", ("Hm.", "Yes.")),
    "nothing thought": (False, "<think>\n\n</think>\n\nYes.", ("", "Yes.")),
    "no reasoning": (False, "Yes, <think> is a tag.", ("", "Yes, <think> is a tag.")),
    "space before a text without any": (False, "  Yes.", ("", "  Yes.")),
    "a part of the marker": (False, "<thin", ("", "<thin")),
    "cut off": (True, "Hm, let me see", ("Hm, let me see", "")),
    "cut off in the marker": (True, "Hm</thi", ("Hm</thi", "")),
    "never an answer": (True, "Hm.</think>\n", ("Hm.", "")),
    "the marker again": (True, "a</think>b</think>c", ("a", "b</think>c")),
    "something like the marker": (True, "a</thing></think>b", ("a</thing>", "b")),
    "empty": (False, "", ("", "")),
}


@pytest.mark.parametrize(("begun", "text", "expected"), CASES.values(), ids=CASES)
def test_an_answer_is_divided(begun, text, expected):
    assert parsed([text], begun=begun) == expected
    assert parsed(text, begun=begun) == expected  # one character at a time


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<", "</", "a", " ", "\n", "b c"]), max_size=9
    ),
    st.data(),
    st.booleans(),
)
def test_pieces_do_not_matter(words, data, begun):
    text = "".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parsed(pieces, begun=begun) == parsed([text], begun=begun)


@given(st.text("ab <>/think\n", max_size=30))
def test_nothing_but_markers_and_space_is_lost(text):
    reasoning, answer = parsed([text])
    kept = "".join((reasoning + answer).split())
    left = "".join(text.split())
    for marker in ("<think>", "</think>"):
        kept, left = kept.replace(marker, ""), left.replace(marker, "")
    assert kept == left


def test_markers_are_those_of_the_template():
    assert markers_of(CHATML) is None
    assert markers_of("{% if '</think>' in content %}…{% endif %}") == MARKERS
    assert markers_of("'[THINK]' + thoughts + '[/THINK]'").closing == "[/THINK]"


def test_a_prompt_tells_whether_it_reasons():
    assert MARKERS.begun_in("<|im_start|>assistant\n<think>\n") is True
    assert MARKERS.begun_in("<|im_start|>assistant\n<think>\n\n</think>\n\n") is False
    assert MARKERS.begun_in("<|im_start|>assistant\n") is None


def counted(ids, *, begun):
    tokens = ReasoningTokens((1, 2), (3,), begun=begun)
    for token in ids:
        tokens.feed([token])
    whole = ReasoningTokens((1, 2), (3,), begun=begun)
    whole.feed(ids)
    assert whole.count == tokens.count
    return tokens.count


def test_tokens_are_counted_with_their_markers():
    assert counted([9, 9, 3, 8, 8], begun=True) == 3
    assert counted([1, 2, 9, 3, 8], begun=False) == 4
    assert counted([7, 1, 2, 9, 3, 8], begun=False) == 4
    assert counted([8, 8, 8, 8, 1, 2, 9], begun=False) == 0
    assert counted([9, 9], begun=True) == 2
