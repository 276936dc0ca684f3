import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import figures


def test_mean():
    assert figures.mean([1, 3]) == 2


def test_share():
    assert figures.share(1, 4) == 0.25


def test_newest():
    assert figures.newest([1, 2]) == 2


def test_collect():
    assert figures.collect(1)[-1] == 1


def test_missing():
    assert figures.missing(None)
    assert not figures.missing(0)


def test_code():
    assert figures.has_code("ok")


def test_sign():
    assert figures.sign(2) == "plus"
