import pytest

from sensors.alarm import Rule, alarms, mean_of, rate
from sensors.stream import Stream


@pytest.fixture
def stream():
    stream = Stream("boiler")
    for second, value in enumerate([10.0, 20.0, 30.0, 40.0]):
        stream.push(second * 1000, value)
    return stream


def test_last(stream):
    assert [one.value for one in stream.last(1)] == [30.0, 40.0]
    assert Stream("x").last(1) == []


def test_mean(stream):
    assert mean_of(stream, 2) == pytest.approx(30.0)
    assert mean_of(Stream("x"), 2) is None


def test_rate(stream):
    assert rate(stream, 3) == pytest.approx(10.0)


def test_alarms(stream):
    assert alarms([stream, Stream("x")], Rule(34.0, 1)) == ["boiler"]
    assert alarms([stream], Rule(34.0, 3)) == []


def test_times_grow(stream):
    with pytest.raises(ValueError):
        stream.push(3000, 1.0)
