"""Questions of decisions and their answers."""

import pytest

from engine.api.decisions import DecisionAnswer, DecisionRules, choice, predicate, score
from engine.api.errors import InvalidRequest


@pytest.mark.parametrize(
    "ask",
    [
        lambda: predicate(" "),
        lambda: choice("", ["a", "b"]),
        lambda: choice("x", ["a"]),
        lambda: choice("x", ["a", "a"]),
        lambda: choice("x", "ab"),
        lambda: choice("x", [str(n) for n in range(256)]),
        lambda: score("x", range(1, 2)),
        lambda: score("x", range(1, 9, 2)),
        lambda: DecisionRules(margin=1.5),
        lambda: DecisionRules(min_label_mass=float("nan")),
    ],
)
def test_what_cannot_be_decided_is_refused_in_one_sentence(ask):
    with pytest.raises(InvalidRequest, match=r"^[A-Zm].*\.$"):
        ask()


def test_a_scale_of_numbers_has_their_values():
    answer = DecisionAnswer(score("x", range(1, 6)), (0, 0, 0.5, 0.5, 0), 0.8)
    assert answer.score == pytest.approx(3.5)
    assert (answer.label, answer.confidence) == ("3", pytest.approx(0.4))
    assert DecisionAnswer(score("x", ["low", "high"]), (0.25, 0.75), 1.0).score == 0.75


@pytest.mark.parametrize(
    ("shares", "mass", "outcome"),
    [
        ((0.9, 0.1), 0.5, "decided"),
        ((0.54, 0.46), 0.5, "abstained"),
        ((0.9, 0.1), 0.0, "refused"),
        ((0.5, 0.5), 0.0, "refused"),
    ],
)
def test_rules_say_when_an_answer_counts(shares, mass, outcome):
    assert DecisionRules().read(predicate("x"), shares, mass).outcome == outcome


def test_rewriting_keeps_what_is_no_text():
    question = choice("ask", {"a": None, "b": "c"}, name="n")
    found = question.rewritten(str.upper, lambda text: text * 2)
    assert (found.text, found.options, found.name) == ("ASK", ("aa", "bb"), "n")
    assert found.descriptions == (None, "cc")


@pytest.mark.parametrize("levels", [range(256), range(10**12), range(-(10**40), 10**40)])
def test_a_scale_with_too_many_levels_is_refused_before_it_is_written_out(levels):
    with pytest.raises(InvalidRequest, match="at most 255 levels"):
        score("How much?", levels)
