"""The reasoning before an answer: its budget, its end on request, and the grammar after it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.grammar import Grammar
from engine.api.reasoning import ReasoningControl
from engine.api.request import FinishReason
from engine.grammar.matcher import mask_words
from engine.grammar.reasoning_matcher import ReasoningMatcher
from engine.runtime.intake import attach_matcher
from tests.fakes.grammars import compiled, toy_compiler
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import VOCAB_SIZE, ToyTokenizer

encode, decode = ToyTokenizer().encode, ToyTokenizer().decode
OPEN, CLOSE, BETWEEN = tuple(encode("<")), tuple(encode("/>")), tuple(encode("::"))
DIGITS = Grammar.regex("[0-9]{2}")


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler()
    yield compiler
    compiler.close()


@pytest.fixture
def digits(compiler):
    return compiled(compiler, DIGITS).matcher()


def matcher(control, answer=None):
    return ReasoningMatcher(control, answer, mask_words=mask_words(VOCAB_SIZE))


def test_the_grammar_begins_after_the_closing_tokens(digits):
    one = matcher(ReasoningControl(CLOSE, answer_ids=BETWEEN), digits)
    assert one.is_free
    assert one.masking is None
    assert one.consume(encode("some thoughts/>"))
    assert one.forced == BETWEEN[0]
    assert one.consume(BETWEEN)
    assert (one.is_free, one.forced) == (False, None)
    assert one.masking is digits
    assert not one.finished
    assert one.consume(encode("42"))
    assert one.finished


def test_the_budget_forces_the_closing_tokens(digits):
    one = matcher(ReasoningControl(CLOSE, max_tokens=3), digits)
    assert one.consume(encode("ab"))
    assert one.is_free
    assert one.consume(encode("c"))
    assert one.forced == CLOSE[0]
    assert one.consume(CLOSE[:1])
    assert one.forced == CLOSE[1]
    assert one.consume([*CLOSE[1:], *encode("42")])
    assert one.finished


def test_a_budget_of_nothing_closes_at_once():
    one = matcher(ReasoningControl(CLOSE, max_tokens=0))
    assert one.forced == CLOSE[0]
    assert one.consume(CLOSE)
    assert one.is_free  # an answer without a grammar
    assert not one.finished


def test_an_answer_may_begin_without_reasoning(digits):
    control = ReasoningControl(CLOSE, opening_ids=OPEN)
    one = matcher(control, digits)
    assert one.also_allowed == OPEN[0]
    assert one.masking is digits
    other = one.copy()
    assert one.consume(encode("42"))
    assert one.finished
    assert other.consume(encode("<x/>42"))
    assert other.finished


def test_an_opening_of_several_tokens_is_completed(digits):
    one = matcher(ReasoningControl(CLOSE, opening_ids=tuple(encode("<<<"))), digits)
    assert one.consume(OPEN)
    assert one.forced == OPEN[0]
    assert one.consume(encode("<<thoughts"))
    assert one.is_free


def test_reasoning_ends_on_request_and_once():
    one = matcher(ReasoningControl(CLOSE))
    assert one.consume(encode("a"))
    assert one.close()
    assert one.forced == CLOSE[0]
    assert not one.close()
    assert one.consume(CLOSE)
    assert not one.close()


def test_a_token_that_the_grammar_refuses_fails_it(digits):
    one = matcher(ReasoningControl(CLOSE), digits)
    assert not one.consume(encode("/>x"))
    assert one.error.startswith("The grammar could not be followed")


@given(st.text("ab/>", max_size=30), st.integers(0, 12))
def test_any_thoughts_end_within_the_budget_and_the_closing(text, budget):
    one = matcher(ReasoningControl(CLOSE, max_tokens=budget))
    wishes, written = iter(encode(text)), []
    while (token := one.forced) is not None or (token := next(wishes, None)) is not None:
        assert one.advance(token)
        written.append(token)
    closed = decode(written).find("/>")
    assert closed <= budget
    copy = one.copy()
    assert (copy.is_free, copy.forced) == (one.is_free, one.forced)


def test_a_request_reasons_within_its_budget_and_answers_in_its_grammar(compiler):
    toy = ToyPipeline()
    control = ReasoningControl(CLOSE, max_tokens=5, answer_ids=BETWEEN)
    request = ask("x", grammar=DIGITS, reasoning=control, ignore_eos=False, max_tokens=40)
    handle = toy.submit(request)
    sequence = toy.sequences[request.request_id]
    attach_matcher(sequence, compiled(compiler, DIGITS), vocab_size=VOCAB_SIZE)
    toy.run()
    output = handle.wait_result(0)
    assert output.finish_reason is FinishReason.STOP
    thoughts, _, answer = output.text.partition("/>::")
    assert len(thoughts) == 5
    assert len(answer) == 2
    assert answer.isdecimal()
    toy.assert_idle()


def test_other_rows_are_not_masked(compiler):
    """A free row beside a constrained one has the tokens that it has alone."""
    alone, both = ToyPipeline(), ToyPipeline()
    free = ask("free", reasoning=ReasoningControl(CLOSE), max_tokens=12)
    expected = alone.submit(ask("free", max_tokens=12))
    alone.run()
    handle = both.submit(free)
    attach_matcher(both.sequences[free.request_id], None, vocab_size=VOCAB_SIZE)
    other = ask("x", grammar=DIGITS, ignore_eos=False, max_tokens=12)
    both.submit(other)
    attach_matcher(
        both.sequences[other.request_id], compiled(compiler, DIGITS), vocab_size=VOCAB_SIZE
    )
    both.run()
    assert handle.wait_result(0).token_ids == expected.wait_result(0).token_ids
