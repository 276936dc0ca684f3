"""The order of builds, without threads."""

import pytest

from engine.api.grammar import Grammar
from engine.grammar.build_queue import Build, BuildQueue


def build(name, *, quick=True):
    return Build(Grammar.regex(name), None, quick=quick)


def names(queue):
    """What one worker builds until nothing is left."""
    taken = []
    while (one := queue.take()) is not None:
        taken.append(one.grammar.source)
        queue.release(one)
    return taken


def filled(workers, *, quick="", slow=""):
    queue = BuildQueue(workers)
    for name in quick:
        queue.put(build(name))
    for name in slow:
        queue.put(build(name, quick=False))
    return queue


def test_the_quick_lane_gives_the_oldest_and_the_newest_in_turns():
    assert "".join(names(filled(1, quick="abcde"))) == "aebdc"


def test_a_single_worker_does_slow_builds_last():
    assert "".join(names(filled(1, quick="ab", slow="yz"))) == "abyz"


@pytest.mark.parametrize("workers", [2, 3])
def test_costly_builds_never_occupy_the_last_worker(workers):
    queue = filled(workers, slow="wxyz")
    slow = [queue.take() for _ in range(workers)]
    assert [one.grammar.source for one in slow[:-1]] == list("wxyz")[: workers - 1]
    assert slow[-1] is None  # one worker stays free
    queue.put(build("cheap"))
    assert queue.take().grammar.source == "cheap"
    queue.release(slow[0])
    assert not queue.take().quick


def test_costly_builds_are_not_starved_by_quick_ones():
    queue = filled(2, quick="abc", slow="z")
    assert [queue.take().grammar.source for _ in range(2)] == ["z", "a"]


@pytest.mark.parametrize("quick", [True, False])
def test_a_build_is_discarded_until_a_worker_takes_it(quick):
    queue = BuildQueue(2)
    first, second = build("a", quick=quick), build("b", quick=quick)
    queue.put(first)
    queue.put(second)
    assert queue.take() is first
    assert queue.discard(second)
    assert not queue.discard(first)
    assert queue.take() is None
