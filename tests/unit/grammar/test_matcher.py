"""Matchers over a vocabulary of single characters."""

import pytest

from engine.api.grammar import Grammar
from tests.fakes.grammars import allowed, compiled, toy_compiler
from tests.fakes.toy_tokenizer import EOS, ToyTokenizer

encode = ToyTokenizer().encode


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler()
    yield compiler
    compiler.close()


def chars(matcher):
    return "".join("$" if one == EOS else ToyTokenizer().decode([one]) for one in allowed(matcher))


def test_the_end_is_allowed_only_where_the_grammar_accepts(compiler):  # regression 53
    matcher = compiled(compiler, Grammar.regex("ab?c|d")).matcher()
    assert chars(matcher) == "ad"
    assert matcher.consume(encode("a"))
    assert chars(matcher) == "bc"
    assert not matcher.accepting
    assert matcher.consume(encode("c"))
    assert matcher.accepting
    assert matcher.finished


def test_an_answer_may_continue_after_an_accepting_state(compiler):
    matcher = compiled(compiler, Grammar.choice(["yes", "yes sir"])).matcher()
    assert matcher.consume(encode("yes"))
    assert (matcher.accepting, matcher.finished) == (True, False)
    assert chars(matcher) == " $"
    assert matcher.consume([EOS])
    assert matcher.finished


def test_copies_go_their_own_way(compiler):  # regression 37
    matcher = compiled(compiler, Grammar.regex("a(b|c)d")).matcher()
    matcher.consume(encode("a"))
    left, right = matcher.copy(), matcher.copy()
    assert left.consume(encode("bd"))
    assert right.consume(encode("c"))
    assert chars(matcher) == "bc"
    assert left.finished
    assert chars(right) == "d"


def test_a_token_the_grammar_does_not_allow_fails_one_matcher_with_a_sentence(compiler):
    start = compiled(compiler, Grammar.regex("ab"))
    matcher, other = start.matcher(), start.matcher()
    assert not matcher.consume(encode("x"))
    assert matcher.error.startswith("The grammar could not be followed")
    assert matcher.error.endswith(").")
    assert not matcher.finished
    assert not matcher.consume(encode("a"))  # and remains failed
    assert other.consume(encode("ab"))


def test_a_choice_is_literal_text(compiler):
    texts = ['a"b', "a\\n", "(x|y)*", "é", "{}"]
    for text in texts:
        matcher = compiled(compiler, Grammar.choice(texts)).matcher()
        assert matcher.consume(encode(text)), text
        assert matcher.accepting


def test_digits_are_ascii_and_slashes_need_no_escape(compiler):
    matcher = compiled(compiler, Grammar.regex(r"\d/\d")).matcher()
    assert chars(matcher) == "0123456789"
    assert matcher.consume(encode("1/2"))
    assert matcher.finished


def test_whitespace_in_json_is_bounded(compiler):
    matcher = compiled(compiler, Grammar.json_schema({"type": "object"})).matcher()
    assert matcher.consume(encode("{ "))
    assert " " not in chars(matcher)


def test_control_tokens_are_never_allowed_as_text(compiler):
    matcher = compiled(compiler, Grammar.regex(r"(.|\n){0,20}")).matcher()
    assert matcher.consume(encode("<"))
    assert matcher.accepting
    assert EOS in allowed(matcher)  # to end here, not to spell "<eos>"
    matcher.consume([EOS])
    assert matcher.finished
