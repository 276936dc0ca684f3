import pytest

from sensors.alarm import mean_of, rate
from sensors.stream import Stream


def stream_of(pairs):
    stream = Stream("s")
    for time_ms, value in pairs:
        stream.push(time_ms, value)
    return stream


@pytest.mark.parametrize(("step", "change"), [(10, 1.0), (250, -2.0), (1000, 0.0), (5000, 4.0)])
def test_rate(step, change):
    stream = stream_of([(7 + at * step, at * change) for at in range(5)])
    assert rate(stream, 60) == pytest.approx(change * 1000 / step)


def test_short_windows():
    stream = stream_of([(0, 0.0), (100, 5.0), (1100, 6.0)])
    assert rate(stream, 0.5) == 0.0
    assert rate(stream, 1) == pytest.approx(1.0)
    assert mean_of(stream, 1) == pytest.approx(5.5)
    assert rate(stream_of([(5, 1.0)]), 10) == 0.0
