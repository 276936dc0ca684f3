"""Votes by what candidates return for the same inputs."""

from agents.width.agreement import Agreement
from agents.width.probe_run import Call, Setting


def agreement(*calls):
    return Agreement(Setting(), tuple(Call(one) for one in calls))


async def test_the_majority_has_the_highest_score():
    right, wrong = "def f(x):\n    return x * 2\n", "def f(x):\n    return x ** 2\n"
    other = "def f(x):\n    return x + x\n"
    votes = await agreement("f(1)", "f(2)", "f(3)").votes([right, wrong, other])
    assert votes.scores[0] == votes.scores[2] > votes.scores[1]
    assert votes.sizes == (2, 1, 2)
    assert votes.inputs == 3
    assert votes.telling == "f(1)"


async def test_equal_candidates_vote_as_often_as_they_were_written():
    one, other = "def f():\n    return 1\n", "def f():\n    return 2\n"
    votes = await agreement("f()").votes([one, other, other])
    assert votes.sizes == (1, 2, 2)
    assert votes.scores[1] > votes.scores[0]


async def test_an_input_that_none_takes_says_nothing():
    votes = await agreement("f('a')", "f(1)").votes(["def f(x):\n    return -x\n"] * 2)
    assert votes.inputs == 1


async def test_failing_together_is_no_agreement():
    fails = "def f(x):\n    raise ValueError\n"
    works = "def f(x):\n    return x\n"
    votes = await agreement("f(1)", "f(2)").votes([fails, fails, works])
    assert votes.scores[2] > votes.scores[0] == 0


async def test_a_candidate_that_cannot_be_loaded_has_no_vote():
    votes = await agreement("f()").votes(["def f(:", "def f():\n    return 1\n"])
    assert votes.scores[0] == 0
    assert votes.sizes == (0, 1)


async def test_functions_that_return_nothing_are_compared_by_their_effect():
    code = "def f(x):\n    x.sort()\n"
    other = "def f(x):\n    x.reverse()\n"
    call = Call("f(*a)", setup="a = ([3, 1, 2],)", after="a", shown="f([3, 1, 2])")
    votes = await Agreement(Setting(), (call,)).votes([code, code, other])
    assert votes.sizes == (2, 2, 1)
