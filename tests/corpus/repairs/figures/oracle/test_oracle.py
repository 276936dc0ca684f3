import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import figures


def refuses_or_returns(call, *allowed):
    try:
        return call() in allowed
    except ValueError:
        return True


def test_mean():
    assert figures.mean([1, 3]) == 2
    assert figures.mean([2]) == 2
    assert refuses_or_returns(lambda: figures.mean([]), 0, None)


def test_share():
    assert figures.share(1, 4) == 0.25
    assert refuses_or_returns(lambda: figures.share(1, 0), 0, None)


def test_per_day():
    assert figures.per_day(7, 2) == 3
    assert refuses_or_returns(lambda: figures.per_day(7, 0), 0, None)


def test_highest():
    assert figures.highest([3, 7, 5]) == 7
    assert refuses_or_returns(lambda: figures.highest([]), 0, None)


def test_newest():
    assert figures.newest([1, 2]) == 2
    assert refuses_or_returns(lambda: figures.newest([]), None)


def test_first_even():
    assert figures.first_even([1, 4, 6]) == 4
    assert refuses_or_returns(lambda: figures.first_even([1]), None)


def test_pairs():
    assert figures.pairs(["a", "b"]) == [(0, "a"), (1, "b")]
    assert figures.pairs([]) == []


def test_collect():
    assert figures.collect(1) == [1]
    assert figures.collect(2) == [2]
    assert figures.collect(3, [1]) == [1, 3]


def test_weekday():
    assert figures.is_weekday("monday")
    assert figures.is_weekday("tuesday")
    assert not figures.is_weekday("sunday")


def test_code():
    assert figures.has_code("".join(["o", "k"]))
    assert not figures.has_code("no")


def test_missing():
    class Odd:
        def __eq__(self, other):
            return True

    assert figures.missing(None)
    assert not figures.missing(Odd())


def test_seats():
    assert figures.seats(2, 2) == ["1A", "1B", "2A", "2B"]


def test_sign():
    assert [figures.sign(one) for one in (2, -2)] == ["plus", "minus"]
    assert isinstance(figures.sign(0), str)
