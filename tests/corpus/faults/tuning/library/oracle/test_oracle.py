from datetime import date, timedelta

from library.books import Book, Catalogue
from library.loans import Desk

DAY = date(2025, 3, 3)


def desk_with(days):
    catalogue = Catalogue()
    desk = Desk(catalogue)
    for number in days:
        catalogue.add(Book(str(number), f"Title {number}", "A"))
        desk.lend(str(number), "m", DAY + timedelta(days=number))
    return desk


def test_order_and_border():
    desk = desk_with([2, 0, 1])
    end = DAY + timedelta(days=28)
    assert desk.overdue(end) == []
    assert [one.isbn for one in desk.overdue(end + timedelta(days=1))] == ["0"]
    assert [one.isbn for one in desk.overdue(end + timedelta(days=2))] == ["0", "1"]
    assert [one.isbn for one in desk.overdue(end + timedelta(days=3))] == ["0", "1", "2"]


def test_not_early():
    desk = desk_with([0])
    assert desk.overdue(DAY) == []
    assert desk.reminders(DAY + timedelta(days=28)) == {}
    assert desk.reminders(DAY + timedelta(days=29)) == {"m": ["Title 0"]}
