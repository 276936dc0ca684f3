import pytest

from rooms.bookings import Bookings
from rooms.slots import Slot


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((10, 20), (20, 30), False), ((20, 30), (10, 20), False), ((10, 20), (19, 30), True),
     ((10, 20), (10, 20), True), ((10, 40), (20, 30), True), ((20, 30), (10, 40), True),
     ((10, 20), (15, 20), True), ((10, 20), (10, 11), True), ((10, 20), (50, 60), False)],
)
def test_overlaps(one, other, expected):
    assert Slot(*one).overlaps(Slot(*other)) is expected


def test_before_and_after():
    bookings = Bookings()
    bookings.book("a", Slot(600, 660))
    assert bookings.is_free("a", Slot(540, 600))
    assert bookings.is_free("a", Slot(660, 700))
    assert not bookings.is_free("a", Slot(659, 700))
    assert not bookings.is_free("a", Slot(500, 601))
