"""Reasoning is divided from the text, wherever the pieces of an answer end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.answer_parts import AnswerReasoning, AnswerText
from engine.text.answer_parser import PlainText
from engine.text.answer_tags import WithoutTags
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


@pytest.mark.parametrize(
    ("template", "answer", "expected"),
    [
        ("</think>", "<think>\nHm.\n</think>\n\nYes.", ("Hm.", "Yes.")),
        ("[THINK] [/THINK]", "[THINK]Hm.[/THINK]Yes.", ("Hm.", "Yes.")),
        ("<seed:think> </seed:think>", "<seed:think>Hm.</seed:think>\nYes.", ("Hm.", "Yes.")),
        (
            "<|START_THINKING|> <|END_THINKING|>",
            "<|START_THINKING|>Hm.<|END_THINKING|>Yes.",
            ("Hm.", "Yes."),
        ),
        ("<|channel>thought <channel|>", "<|channel>thought\nHm.<channel|>Yes.", ("Hm.", "Yes.")),
        (
            "'Here is my thought process:' 'Here is my response:'",
            "Here is my thought process: Hm.\n\nHere is my response: Yes.",
            ("Hm.", "Yes."),
        ),
        (
            "<think></think> <response></response>",
            "<think>Hm.</think>\n<response>\nYes.\n</response>\n",
            ("Hm.", "Yes."),
        ),
        (
            "<think></think> <answer></answer>",
            "<think>\nHm.\n</think>\n<answer>\nYes.\n</answer>",
            ("Hm.", "Yes."),
        ),
        (
            "Here are my reasoning steps:\n [BEGIN FINAL RESPONSE]",
            "Here are my reasoning steps:\nHm.\n[BEGIN FINAL RESPONSE]\nYes.\n[END FINAL RESPONSE]",
            ("Hm.", "Yes."),
        ),
    ],
    ids=[
        "think", "magistral", "seed", "command", "gemma4", "granite3.2", "response", "answer", "apriel",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_the_reasoning_of_a_family_is_divided(template, answer, expected, size):
    markers = markers_of(template)
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    rest = WithoutTags(markers.tags, PlainText())
    parser = ReasoningParser(markers, rest, begun=False)
    parts = [part for piece in pieces for part in parser.feed(piece)] + [*parser.finish()]
    assert expected == tuple(
        "".join(part.text for part in parts if isinstance(part, kind))
        for kind in (AnswerReasoning, AnswerText)
    )


def test_harmony_is_not_taken_for_another():
    markers = markers_of("<|channel|>analysis<|message|> <|end|> </think>")
    assert markers.is_message
    assert markers.begun_in("hi<|end|><|start|>assistant") is None
    assert markers.begun_in("<|start|>assistant<|channel|>analysis<|message|>I") is True
    assert markers.begun_in("<|channel|>analysis<|message|>I<|end|><|start|>assistant") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<response>a</response>", "a"),
        (" \n<response>\n a b\n</response>\n", "a b"),
        ("a <response> b", "a <response> b"),
        ("<respon", "<respon"),
        ("a</respon", "a</respon"),
        ("<response>a</response> b", "a</response> b"),
        ("  a  ", "  a  "),
        ("", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_tags_around_an_answer_are_left_out(text, expected, size):
    parser = WithoutTags(("<response>", "</response>"), PlainText())
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    parts = [part for piece in pieces for part in parser.feed(piece)] + [*parser.finish()]
    assert "".join(part.text for part in parts) == expected


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
