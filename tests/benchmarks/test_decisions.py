"""The figures of `benchmarks/decisions.py`, and its labelled questions."""

import json
from collections import Counter

import pytest

from benchmarks.decisions import (
    ITEMS,
    STATEMENTS,
    area_under_curve,
    calibration_error,
    figures,
    question_of,
    right_option,
)
from engine.api.decisions import DecisionAnswer


def test_the_area_is_the_share_of_pairs_in_order():
    assert area_under_curve([(0.9, True), (0.8, False), (0.7, True), (0.1, False)]) == 0.75
    assert area_under_curve([(0.5, True), (0.5, False)]) == 0.5


def test_the_calibration_error_is_the_distance_from_the_accuracy():
    assert calibration_error([(0.75, True)] * 3 + [(0.75, False)]) == pytest.approx(0)
    assert calibration_error([(0.95, True), (0.95, False)]) == pytest.approx(0.45)
    assert calibration_error([(1.0, True)]) == pytest.approx(0)


def test_every_item_has_a_right_option_and_half_are_unseen():
    items = [json.loads(line) for line in ITEMS.read_text().splitlines()]
    assert len(items) >= 120
    for item in items:
        assert 0 <= right_option(item) < len(question_of(item).options)
    parts = Counter((item["part"], item["type"]) for item in items)
    for kind in ("predicate", "choice", "score"):
        assert parts["seen", kind] == parts["unseen", kind]
    answers = Counter(item["answer"] for item in items if item["type"] == "predicate")
    assert answers[True] == answers[False]


def test_figures_count_what_is_right_and_what_is_decided():
    item = {"type": "predicate", "instructions": "x", "answer": True, "part": "seen", "input": "y"}
    question = question_of(item)
    answers = [
        DecisionAnswer(question, (0.9, 0.1), 0.8),
        DecisionAnswer(question, (0.48, 0.52), 0.5, "abstained"),
    ]
    found = figures([item, item], answers)
    assert (found["right"], found["decided"], found["right_of_decided"]) == (1, 1, 1)
    assert found["least_label_mass"] == 0.5


def test_there_are_as_many_statements_as_agents():
    assert len(set(STATEMENTS)) == 51
