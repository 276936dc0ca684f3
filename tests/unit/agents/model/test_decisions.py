"""One-token decisions: order, calibration, abstention."""

import math

import pytest

from agents.api.errors import ModelFailure
from agents.model.decisions import Decider, combine, letters, orders
from agents.model.layout import SharedLayout
from agents.model.question import Question
from agents.model.session import ModelSession
from tests.fakes.scripted_client import ScriptedClient

COLOUR = Question("colour", "Which colour has {subject}?", ("red", "green", "blue"), margin=0.2)


def decider_of(scores):
    client = ScriptedClient(scores=scores)
    session = ModelSession(client)
    layout = SharedLayout(session)
    return client, layout, Decider(session, layout)


def prefers(label, strength):
    """Scores of a model that prefers one option, whichever letter it has, for real subjects."""

    def scores(request, text):
        lines = [line for line in text.split("\n") if line[1:3] == ") "]
        known = "N/A" not in text
        return {line[0]: strength if known and line[3:] == label else 0.0 for line in lines}

    return scores


async def test_the_preferred_option_wins():
    _, layout, decider = decider_of(prefers("green", 2.0))
    shared = layout.shared(document="Grass is green.")
    (decision,), usage = await decider.decide(shared, [(COLOUR, "grass")])
    assert (decision.label, decision.abstained) == ("green", False)
    assert decision.probabilities["green"] == pytest.approx(math.exp(2) / (math.exp(2) + 2))
    assert usage.generated_tokens == 4


async def test_a_preference_for_a_letter_cancels_out():
    _, layout, decider = decider_of(lambda request, text: {"A": 3.0, "B": 0.0, "C": 0.0})
    (decision,), _ = await decider.decide(layout.shared(document="x"), [(COLOUR, "grass")])
    assert decision.abstained
    assert decision.value("blue") == "blue"
    assert list(decision.probabilities.values()) == pytest.approx([1 / 3] * 3)


async def test_a_preference_for_an_option_without_evidence_is_subtracted():
    def biased(request, text):
        lines = [line for line in text.split("\n") if line[1:3] == ") "]
        return {line[0]: 5.0 if line[3:] == "red" else 0.0 for line in lines}

    _, layout, decider = decider_of(biased)
    (decision,), _ = await decider.decide(layout.shared(document="x"), [(COLOUR, "grass")])
    assert decision.abstained


async def test_the_empty_prompt_is_scored_once_per_question():
    client, layout, decider = decider_of(prefers("blue", 1.0))
    shared = layout.shared(document="x")
    await decider.decide(shared, [(COLOUR, "a"), (COLOUR, "b")])
    assert len(client.requests) == 2 + 4
    await decider.decide(shared, [(COLOUR, "c")])
    assert len(client.requests) == 2 + 4 + 2


async def test_all_requests_of_a_batch_share_the_prefix():
    client, layout, decider = decider_of(prefers("blue", 1.0))
    shared = layout.shared(document="x")
    await decider.decide(shared, [(COLOUR, "a"), (COLOUR, "b")])
    size = len(shared.token_ids)
    assert {one.prompt_ids[:size] for one in client.requests[2:]} == {shared.token_ids}
    assert all(one.sampling.max_tokens == 1 for one in client.requests)


def test_the_margin_decides_abstention():
    narrow = combine(COLOUR, ([0.1, 0.0, 0.0], [0.1, 0.0, 0.0]))
    assert (narrow.label, narrow.abstained) == ("red", True)
    wide = combine(COLOUR, ([2.0, 0.0, 0.0], [2.0, 0.0, 0.0]))
    assert (wide.label, wide.abstained) == ("red", False)


def test_the_second_order_is_the_reverse():
    assert orders(3) == ((0, 1, 2), (2, 1, 0))
    assert COLOUR.about("it", (2, 1, 0)).split("\n")[1:4] == ["A) blue", "B) green", "C) red"]


def test_letters_keep_the_tokens_of_their_prefix():
    ids = {"Answer:": [9], **{f"Answer: {chr(65 + n)}": [9, 100 + n] for n in range(26)}}
    found = letters(ids.__getitem__)
    assert (found.prefix, found.ids[:2]) == ((9,), (100, 101))


def test_a_tokenizer_without_letters_is_refused():
    with pytest.raises(ModelFailure):
        letters(lambda text: [1, 2, 3])


@pytest.mark.parametrize("options", [(), ("one",), ("same", "same"), tuple(map(str, range(27)))])
def test_impossible_questions_are_refused(options):
    with pytest.raises(ValueError, match="options"):
        Question("q", "?", options)
