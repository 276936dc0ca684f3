from datetime import datetime, timedelta

from departures.board import arrival_text, clock, connects, departures
from departures.flights import Flight


def at(day, hour, minute=0):
    return datetime(2025, 1, day, hour, minute)


BERLIN_NEW_YORK = Flight("P1", "BER", "JFK", at(1, 10), at(1, 13))
NEW_YORK_LISBON = Flight("P2", "JFK", "LIS", at(1, 19), at(2, 7, 10))
LISBON_ATHENS = Flight("P3", "LIS", "ATH", at(2, 8), at(2, 14))


def test_duration():
    assert LISBON_ATHENS.duration == timedelta(hours=4)
    assert BERLIN_NEW_YORK.duration == timedelta(hours=9)


def test_clock():
    assert clock("LIS", at(1, 12)) == "12:00"
    assert clock("DEL", at(1, 12)) == "17:30"


def test_departures():
    flights = [BERLIN_NEW_YORK, NEW_YORK_LISBON]
    assert departures(flights, "BER", at(1, 8, 30)) == ["P1"]
    assert departures(flights, "BER", at(1, 9, 30)) == []


def test_arrival():
    assert arrival_text(NEW_YORK_LISBON) == "07:10+1"
    assert arrival_text(LISBON_ATHENS) == "14:00"


def test_connects():
    assert connects(BERLIN_NEW_YORK, NEW_YORK_LISBON)
    assert connects(NEW_YORK_LISBON, LISBON_ATHENS)
    assert not connects(NEW_YORK_LISBON, LISBON_ATHENS, minutes=60)
