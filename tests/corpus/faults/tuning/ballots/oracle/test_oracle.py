import pytest

from ballots.count import counted, majority
from ballots.rounds import run_off


@pytest.mark.parametrize(
    ("votes", "winner"),
    [("a", "a"), ("ab", None), ("aab", "a"), ("abb", "b"), ("abc", None), ("aaabbc", None),
     ("aaaabbc", "a"), ("aaabbbc", None), ("aaaabbbcc", None), ("", None)],
)
def test_majority(votes, winner):
    assert majority(counted(votes)) == winner


def test_run_off():
    assert run_off([["a"], ["a"], ["b"]]) == ("a", 1)
    assert run_off([["a", "c"], ["b", "c"], ["c"], ["c"], ["a", "c"]])[0] == "c"
