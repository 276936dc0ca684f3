"""Decisions on calls: what is asked, and what the probabilities of single tokens say."""

import math

import pytest

from engine.api.request import FinishReason, RequestOutput, Timings
from engine.text.tool_calls.decision import NO_CALL, QUESTION, CallDecider
from engine.text.tool_calls.forms.hermes import HERMES
from engine.text.tool_calls.thresholds import CallThresholds, Threshold
from tests.server.toy_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
THRESHOLDS = CallThresholds(
    fits=Threshold(1.0, -0.5), several=Threshold(0.5, 1.0), again=Threshold(-0.5, -0.5)
)
PROMPT = TOKENIZER.encode_chat([{"role": "user", "content": "hi"}])
NONE = -100.0


@pytest.fixture
def decider():
    return CallDecider(TOKENIZER, HERMES, THRESHOLDS)


def text_of(ids):
    return TOKENIZER.decode(ids, skip_special=False)


def output(*logprobs):
    return RequestOutput(
        "r", 1, (1,), "", FinishReason.LENGTH, Timings(0.0), seed=0, token_id_logprobs=(logprobs,)
    )


def counts(**probabilities):
    """The output of the question; `n2=0.5` is the probability of the digit 2."""
    return output(*(math.log(probabilities.get(f"n{digit}", 1e-6)) for digit in range(10)))


def decide(decider, *outputs, tools=1, **options):
    return decider.decision(outputs, tools, **{"follows_result": False} | options)


def test_two_tokens_are_asked_for_behind_the_prompt(decider):
    (question, digits), (name, starts) = decider.rows(
        PROMPT, ["get_time", "get_weather", "now"], follows_result=False
    )
    for ids, sampling in ((question, digits), (name, starts)):
        assert list(ids[: len(PROMPT)]) == PROMPT
        assert sampling.max_tokens == 1
    assert text_of(question[len(PROMPT) :]) == (
        f"<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )
    assert bytes(digits.logprob_token_ids) == b"0123456789"
    assert text_of(name[len(PROMPT) :]) == '<tool_call>\n{"name": "'
    assert bytes(starts.logprob_token_ids) == b"gn"


def test_after_a_result_only_the_beginning_of_the_answer_is_looked_at(decider):
    ((ids, sampling),) = decider.rows(PROMPT, ["now"], follows_result=True)
    assert list(ids) == PROMPT
    assert {ord("{"), ord("`"), ord("<")} <= set(sampling.logprob_token_ids)


def test_a_vocabulary_without_digits_decides_nothing():
    class Pairs:
        """A tokenizer that writes two tokens for a digit."""

        def __getattr__(self, name):
            return getattr(TOKENIZER, name)

        def encode_rest(self, text):
            return TOKENIZER.encode_rest(text) * 2

    decider = CallDecider(Pairs(), HERMES, THRESHOLDS)
    assert decider.rows(PROMPT, ["now"], follows_result=False) == []
    assert decide(decider).kind == "free"
    assert decide(decider, must_call=True).kind == "call"


def test_a_call_needs_both_a_number_and_a_declared_name(decider):
    likely, unlikely = counts(n0=0.2, n1=0.8), counts(n0=0.6, n1=0.4)
    assert decide(decider, likely, output(math.log(0.9))).kind == "call"
    assert decide(decider, unlikely, output(math.log(0.9))).kind == "text"
    assert decide(decider, likely, output(math.log(0.2), NONE)).kind == "text"
    assert decide(decider, likely, output(math.log(0.45), math.log(0.45))).kind == "call"


def test_the_score_of_the_question_is_that_of_the_digits_alone(decider):
    few = counts(n0=0.02, n1=0.08)  # the other nine tenths are no digits
    assert decide(decider, few).score == pytest.approx(-math.log(0.2), abs=1e-3)


def test_with_many_tools_less_evidence_is_needed(decider):
    doubtful = counts(n0=0.5, n1=0.5)
    assert decide(decider, doubtful).kind == "text"
    assert decide(decider, doubtful, tools=10).kind == "call"


def test_with_many_tools_the_name_counts_more_and_the_question_less(decider):
    asked, unasked = counts(n0=0.1, n1=0.9), counts(n0=0.6, n1=0.4)

    def fits(question, name, tools):
        return decide(decider, question, output(math.log(name)), tools=tools).score

    for tools, by_name in ((1, False), (12, True)):
        # A doubtful name after a sure answer, against a sure name after a doubtful answer.
        assert (fits(unasked, 0.9, tools) > fits(asked, 0.3, tools)) is by_name


def test_several_calls_are_as_many_as_is_likeliest(decider):
    three = counts(n0=0.05, n1=0.2, n2=0.25, n3=0.4)
    assert decide(decider, three).calls == 3
    assert decide(decider, three, parallel=False).calls == 1
    assert decide(decider, counts(n0=0.05, n1=0.5, n2=0.4)).calls == 1
    assert decide(decider, three, tools=8).calls == 1
    assert decide(decider, counts(n9=0.9)).calls <= 8


def test_larger_numbers_count_more_because_small_ones_are_likelier_whatever_is_asked(decider):
    assert decide(decider, counts(n1=0.1, n2=0.4, n3=0.35)).calls == 3
    assert decide(decider, counts(n1=0.1, n2=0.3, n3=0.2, n4=0.2)).calls == 4
    assert decide(decider, counts(n1=0.1, n2=0.4, n3=0.2, n4=0.1)).calls == 2


def test_a_demanded_call_is_counted_only(decider):
    none = counts(n0=0.9, n2=0.1)
    assert decide(decider, none).kind == "text"
    demanded = decide(decider, none, must_call=True)
    assert (demanded.kind, demanded.calls) == ("call", 2)


def test_after_a_result_the_model_may_call_again_if_it_begins_to(decider):
    assert decide(decider, output(math.log(0.9)), follows_result=True).kind == "free"
    assert decide(decider, output(math.log(0.3)), follows_result=True).kind == "text"
    assert decide(decider, output(math.log(0.3)), follows_result=True, tools=6).kind == "free"


def test_a_turn_of_the_user_stands_between_prompt_and_answer(decider):
    assert NO_CALL in text_of(decider.turn(NO_CALL))


def test_a_template_that_leaves_out_the_turn_has_none():
    template = "{% for one in messages[:1] %}{{ one.content }}{% endfor %}"
    decider = CallDecider(byte_tokenizer(template=template), HERMES, THRESHOLDS)
    assert decider.turn(NO_CALL) == []
    assert decider.rows(PROMPT, ["now"], follows_result=False) == []
