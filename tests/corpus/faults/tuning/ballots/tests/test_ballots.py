import pytest

from ballots.count import counted, majority, ranking, turnout
from ballots.rounds import run_off


def test_counted():
    assert counted(["a", " a ", None, "", "b"]) == {"a": 2, "b": 1}


def test_majority():
    assert majority(counted("aaab")) == "a"
    assert majority(counted("aabb")) is None


def test_half_rounded_down_is_no_majority():
    assert majority(counted("aabbc")) is None


def test_ranking():
    assert ranking(counted("abbc")) == ["b", "a", "c"]


def test_turnout():
    assert turnout(1, 3) == "33.3 %"


def test_run_off():
    ballots = [["a", "b"], ["a", "b"], ["b", "c"], ["b", "c"], ["c", "b"]]
    assert run_off(ballots) == ("b", 2)
    with pytest.raises(ValueError):
        run_off([])
