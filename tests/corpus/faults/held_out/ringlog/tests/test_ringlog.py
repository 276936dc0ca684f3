import pytest

from levels import at_least, counts, status
from ring import RingLog


def filled(capacity, *lines):
    log = RingLog(capacity)
    for line in lines:
        log.write(line)
    return log


def test_room_for_all():
    assert list(filled(3, "a", "b")) == ["a", "b"]


def test_the_oldest_goes_first():
    log = filled(3, "a", "b", "c", "d")
    assert list(log) == ["b", "c", "d"]
    assert log.num_dropped == 1


def test_round_and_round():
    assert list(filled(3, *"abcdefg")) == ["e", "f", "g"]


def test_tail():
    assert filled(5, *"abcd").tail(2) == ["c", "d"]
    assert filled(5, *"abcd").tail(9) == ["a", "b", "c", "d"]


def test_levels():
    log = filled(9, "WARN a", "b", "ERROR c")
    assert at_least(log, "WARN") == ["WARN a", "ERROR c"]
    assert counts(log)["INFO"] == 1
    assert status(log) == "3 lines, worst ERROR"


def test_capacity():
    with pytest.raises(ValueError):
        RingLog(0)
