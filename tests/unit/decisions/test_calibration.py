"""Scores of questions about an input without content, kept by model."""

from engine.decisions import calibration
from engine.decisions.calibration import Calibration

SCORES = ((-1.0, -2.0),)


def test_scores_are_kept_until_the_model_changes():
    kept = Calibration()
    assert kept.get("one", "q") is None
    kept.put("one", "q", SCORES)
    assert kept.get("one", "q") == SCORES
    assert kept.get("two", "q") is None
    assert kept.get("one", "q") is None


def test_scores_of_a_model_that_was_replaced_meanwhile_are_dropped():
    kept = Calibration()
    assert kept.get("one", "q") is None
    assert kept.get("two", "q") is None
    kept.put("one", "q", SCORES)
    assert kept.get("two", "q") is None


def test_the_questions_used_last_are_kept(monkeypatch):
    monkeypatch.setattr(calibration, "SIZE", 2)
    kept = Calibration()
    kept.get("m", "a")
    for name in "ab":
        kept.put("m", name, SCORES)
    kept.get("m", "a")
    kept.put("m", "c", SCORES)
    assert [kept.get("m", name) is not None for name in "abc"] == [True, False, True]
