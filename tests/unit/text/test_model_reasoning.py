"""The reasoning of the answers to one prompt: begun, ended or open, and how the engine is told of it."""

import pytest

from engine.api.answer_parts import AnswerReasoning, AnswerText
from engine.text.model_reasoning import reasoning_after
from engine.text.reasoning_markers import ReasoningMarkers, markers_of
from tests.fakes.chat_toys import ToyTokenizer

MARKERS = ReasoningMarkers("<think>", "</think>")


def after(tail, markers=MARKERS):
    tokens = ToyTokenizer()
    return reasoning_after(tail, markers, encode=tokens.encode, encode_rest=tokens.encode)


def parts(reasoning, text):
    parser = reasoning.parser(reasoning.plain_parser())
    return [*parser.feed(text), *parser.finish()]


def test_a_prompt_that_has_ended_it_leaves_none():
    assert after("assistant <think></think>") is None


@pytest.mark.parametrize(("tail", "begun"), [("assistant", False), ("assistant <think>", True)])
def test_the_opening_marker_is_expected_unless_the_prompt_has_it(tail, begun):
    reasoning = after(tail)
    assert reasoning.begun is begun
    control = reasoning.control(7)
    assert control.opening_ids == (() if begun else reasoning.opening_ids)
    assert (control.closing_ids, control.max_tokens) == (reasoning.closing_ids, 7)
    assert control.answer_ids == tuple(ToyTokenizer().encode("\n\n"))


def test_only_control_tokens_need_to_be_shown():
    reasoning = after("assistant")
    shown = frozenset((reasoning.opening_ids[0], 5))
    assert reasoning.shown_control_ids(shown) == {reasoning.opening_ids[0]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("</think>", "<think>hmm</think>\n\nSo."),
        ("</think><answer></answer>", "<think>hmm</think><answer>\nSo.\n</answer>"),
        (
            "<|channel|>",
            "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant<|channel|>final<|message|>So.",
        ),
    ],
)
def test_an_answer_is_divided_as_its_model_writes_it(template, text):
    assert parts(after("assistant", markers_of(template)), text) == [
        AnswerReasoning("hmm"),
        AnswerText("So."),
    ]
