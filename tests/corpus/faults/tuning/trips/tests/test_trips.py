import pytest

from trips.figures import fastest, pace, speed_kmh, summary
from trips.track import Point, Track, without_pauses


def straight(name, metres, seconds):
    return Track(name, [Point(0, 0, 0), Point(seconds, metres, 0)])


def test_distance():
    track = Track("t", [Point(0, 0, 0), Point(1, 3, 4), Point(2, 3, 0)])
    assert track.metres == pytest.approx(9)


def test_speed_of_an_hour():
    assert speed_kmh(straight("bike", 20000, 3600)) == pytest.approx(20)


def test_speed_without_time():
    assert speed_kmh(Track("t", [Point(0, 0, 0)])) == 0.0


def test_pace():
    assert pace(straight("run", 2000, 660)) == "5:30"


def test_summary():
    assert summary(straight("walk", 3000, 1800)) == "walk: 3.0 km, 6.0 km/h"


def test_fastest():
    tracks = [straight("a", 1000, 600), straight("b", 1000, 300)]
    assert fastest(tracks).name == "b"


def test_pauses():
    track = Track("t", [Point(0, 0, 0), Point(500, 0, 0), Point(510, 10, 0)])
    assert without_pauses(track).seconds == 10
