from datetime import datetime, timedelta

import pytest

from departures.board import clock, departures
from departures.flights import OFFSETS, Flight, to_local, to_utc

NOON = datetime(2025, 6, 1, 12)


@pytest.mark.parametrize("airport", sorted(OFFSETS))
def test_there_and_back(airport):
    assert to_utc(to_local(NOON, airport), airport) == NOON
    assert to_local(NOON, airport) - NOON == timedelta(minutes=OFFSETS[airport])
    assert NOON - to_utc(NOON, airport) == timedelta(minutes=OFFSETS[airport])


def test_west():
    assert clock("SFO", NOON) == "04:00"
    flight = Flight("W", "SFO", "JFK", datetime(2025, 6, 1, 8), datetime(2025, 6, 1, 16, 30))
    assert flight.duration == timedelta(hours=5, minutes=30)
    assert departures([flight], "SFO", NOON) == ["W"]
    assert departures([flight], "SFO", NOON + timedelta(hours=5)) == []
