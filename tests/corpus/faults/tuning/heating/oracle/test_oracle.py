import pytest

from heating.control import Settings, valve
from heating.room import Room, simulate


@pytest.mark.parametrize(
    ("measured", "hour", "expected"),
    [(10.0, 12, 100.0), (19.0, 12, 25.0), (19.4, 12, 15.0), (20.5, 12, 10.0), (20.6, 12, 0.0),
     (19.0, 23, 0.0), (15.0, 3, 25.0), (16.0, 0, 10.0), (30.0, 12, 0.0)],
)
def test_valve(measured, hour, expected):
    assert valve(Settings(), measured, hour) == pytest.approx(expected)


def test_day():
    warm = simulate(Room(12.0), Settings(), [12] * 24)
    assert warm[0] == pytest.approx(12.96)
    assert 17 < warm[-1] < 20
