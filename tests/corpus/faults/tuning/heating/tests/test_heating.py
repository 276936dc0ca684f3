import pytest

from heating.control import Settings, target_at, valve
from heating.room import Room, hours_below, simulate


def test_target():
    assert target_at(Settings(), 12) == 20.0
    assert target_at(Settings(), 23) == 16.0
    assert target_at(Settings(), 5) == 16.0


def test_cold_room_opens_the_valve():
    assert valve(Settings(), 18.0) == pytest.approx(50.0)


def test_warm_room_closes_it():
    assert valve(Settings(), 25.0) == 0.0


def test_near_the_target():
    assert valve(Settings(), 20.2) == 10.0


def test_an_open_valve_warms():
    room = Room(10.0, outside=10.0)
    room.step(100.0)
    assert room.temperature == pytest.approx(11.2)


def test_hours_below():
    assert hours_below([17.0, 19.0, 21.0], 20.0) == 2
