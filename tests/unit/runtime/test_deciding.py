"""`AsyncPravahaEngine.decide`: decisions against the raw log-probabilities of the same rows."""

import math

import pytest

from engine.api.decisions import DecisionRules, choice, predicate, score
from engine.api.errors import ContextLengthExceeded, InvalidRequest
from engine.api.request import Request, SamplingParams
from engine.decisions.calibration import Calibration
from engine.decisions.preparing import input_ids, prepare
from tests.server.byte_engine import byte_engine, is_quiet, wait_until

TEXT = "The parcel came two weeks late, and the box was broken."
QUESTIONS = [
    predicate("The writer is content."),
    choice("What is it about?", ["delivery", "price", "taste"], name="topic"),
    score("How angry is the writer?", range(1, 31)),
]
READ_ALL = {"min_label_mass": 0.0}


@pytest.fixture(scope="module")
def engine():
    with byte_engine(context=1024, blocks=512, block_size=16) as started:
        yield started


def raw_rows(engine):
    """The log-probabilities of each row, asked alone and without its neighbours."""
    batch = prepare(
        engine.tokenizer,
        QUESTIONS,
        DecisionRules(),
        shared=input_ids(engine.tokenizer, TEXT),
        block_size=16,
        model="toy",
        calibration=Calibration(),
    )
    rows = []
    for request in batch.requests():
        sampling = SamplingParams(
            temperature=0.0, max_tokens=1, logprob_token_ids=request.sampling.logprob_token_ids
        )
        output = engine.submit(Request(request.prompt_ids, sampling)).wait_result(60)
        rows.append(output.token_id_logprobs[0])
    return rows


def test_decisions_are_the_softmax_of_raw_log_probabilities(engine):
    decided = engine.decide(TEXT, QUESTIONS, **READ_ALL)
    rows = raw_rows(engine)
    assert decided.output_tokens == len(rows) == 2 + 2 + 2 * 4
    for answer, (forward, backward) in zip(decided.answers, (rows[:2], rows[2:4]), strict=False):
        count = len(answer.question.options)
        means = [
            (one + other) / 2
            for one, other in zip(forward[:count], backward[:count][::-1], strict=True)
        ]
        weights = [math.exp(one) for one in means]
        expected = [weight / sum(weights) for weight in weights]
        assert list(answer.probabilities) == pytest.approx(expected, rel=1e-4)
        mass = sum(math.exp(one) for row in (forward, backward) for one in row[:count]) / 2
        assert answer.label_mass == pytest.approx(mass, rel=1e-4)
    scale = decided.answers[2]
    assert 1 <= scale.score <= 30
    assert math.fsum(scale.probabilities) == pytest.approx(1)


def test_answers_do_not_depend_on_each_other(engine):
    together = engine.decide(TEXT, QUESTIONS, **READ_ALL).answers
    alone = [engine.decide(TEXT, [one], **READ_ALL).answers[0] for one in QUESTIONS]
    assert together == tuple(alone)


def test_the_text_is_computed_once_and_found_again(engine):
    text = "A text that nobody asked about before. " * 8
    before = engine.snapshot().totals.prompt_tokens
    decided = engine.decide(text, [predicate(f"It is {number}.") for number in range(30)])
    computed = engine.snapshot().totals.prompt_tokens - before
    tails = decided.input_tokens - len(text)
    assert decided.cached_tokens == 0
    assert computed <= len(text) + 2 * tails
    again = engine.decide(text, [predicate("It is late.")])
    assert again.cached_tokens >= len(text)


def test_calibration_is_computed_once_for_a_question(engine):
    question = [predicate("A statement for the calibration.")]
    raw = engine.decide(TEXT, question, **READ_ALL)
    first = engine.decide(TEXT, question, calibrate=True, **READ_ALL)
    again = engine.decide("Another text.", question, calibrate=True, **READ_ALL)
    empty = engine.decide("N/A", question, **READ_ALL)
    assert (raw.output_tokens, first.output_tokens, again.output_tokens) == (2, 4, 2)
    odds = [
        math.log(one.answers[0].probability / (1 - one.answers[0].probability))
        for one in (raw, empty, first)
    ]
    assert odds[2] == pytest.approx(odds[0] - odds[1], abs=1e-3)


def test_what_cannot_be_asked_is_refused_before_anything_is_computed(engine):
    for text, questions in ((" ", QUESTIONS), (TEXT, []), (TEXT, QUESTIONS * 200)):
        with pytest.raises(InvalidRequest):
            engine.decide(text, questions)
    with pytest.raises(ContextLengthExceeded):
        engine.decide("x" * 2000, QUESTIONS)
    wait_until(lambda: is_quiet(engine))
