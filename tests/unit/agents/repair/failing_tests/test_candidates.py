"""Candidates by what they do: what speaks for each group, and which change stands for it."""

from agents.repair.failing_tests.candidates import PatchCandidate, clusters
from agents.repair.failing_tests.suspects import Suspect

SUSPECT = Suspect("a.py", "f", 1, 2, 1.0)


def candidate(what, did, *, tier=None, votes=0, lines=1):
    diff = "--- a\n+++ b\n" + "-x\n+y\n" * lines
    return PatchCandidate(SUSPECT, "", diff, what, tier, votes, signature=(did,))


def test_samples_that_do_the_same_add_up():
    found = clusters(
        [
            candidate("one", "a", votes=1),
            candidate("two", "b", votes=1),
            candidate("three", "a", votes=2),
        ]
    )
    assert [one.weight for one in found] == [3.0, 1.0]


def test_the_smallest_change_stands_for_its_group():
    (found,) = clusters(
        [candidate("large", "a", votes=5, lines=3), candidate("small", "a", tier=2)]
    )
    assert found.best.what == "small"
    assert found.weight == 6.0


def test_more_usual_slips_weigh_more():
    weights = [clusters([candidate("x", "a", tier=tier)])[0].weight for tier in range(3)]
    assert weights == [4.0, 2.0, 1.0]


def test_two_slips_that_do_the_same_count_as_the_more_usual_one():
    (found,) = clusters([candidate("x", "a", tier=1), candidate("y", "a", tier=2)])
    assert found.weight == 2.0
