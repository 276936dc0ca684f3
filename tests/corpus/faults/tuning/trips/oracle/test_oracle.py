import pytest

from trips.figures import speed_kmh, summary
from trips.track import Point, Track


@pytest.mark.parametrize(
    ("metres", "seconds", "expected"),
    [(1000, 60, 60.0), (500, 90, 20.0), (100, 10, 36.0), (42195, 10800, 14.065), (0, 50, 0.0)],
)
def test_speed(metres, seconds, expected):
    track = Track("t", [Point(5, 0, 0), Point(5 + seconds, metres, 0)])
    assert speed_kmh(track) == pytest.approx(expected)
    assert summary(track).endswith(f"{expected:.1f} km/h")
