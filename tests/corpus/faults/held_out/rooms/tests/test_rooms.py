import pytest

from rooms.bookings import Bookings, Taken
from rooms.slots import Slot, parse_slot


def test_parse():
    assert parse_slot("9:30-11:00") == Slot(570, 660)
    with pytest.raises(ValueError):
        parse_slot("11:00-9:30")


def test_taken():
    bookings = Bookings()
    bookings.book("a", parse_slot("9:00-10:00"))
    bookings.book("b", parse_slot("9:00-10:00"))
    with pytest.raises(Taken):
        bookings.book("a", parse_slot("9:30-10:30"))


def test_one_after_the_other():
    bookings = Bookings()
    bookings.book("a", parse_slot("9:00-10:00"))
    bookings.book("a", parse_slot("10:00-11:00"))
    assert bookings.used_minutes("a") == 120


def test_free_slots():
    bookings = Bookings()
    bookings.book("a", parse_slot("9:00-10:00"))
    assert bookings.free_slots("a") == [Slot(480, 540), Slot(600, 1080)]
