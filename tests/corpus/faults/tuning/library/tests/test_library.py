from datetime import date, timedelta

import pytest

from library.books import Book, Catalogue
from library.loans import Desk

DAY = date(2025, 3, 3)


@pytest.fixture
def desk():
    catalogue = Catalogue()
    catalogue.add(Book("1", "Emma", "Jane Austen", copies=2))
    catalogue.add(Book("2", "Dracula", "Bram Stoker"))
    return Desk(catalogue)


def test_search():
    catalogue = Catalogue()
    catalogue.add(Book("1", "Emma", "Jane Austen"))
    assert [book.isbn for book in catalogue.find("austen emma")] == ["1"]
    assert catalogue.find("stoker") == []


def test_no_copy_left(desk):
    desk.lend("2", "ann", DAY)
    with pytest.raises(LookupError):
        desk.lend("2", "bob", DAY)


def test_fee(desk):
    loan = desk.lend("1", "ann", DAY)
    assert desk.give_back(loan, loan.due + timedelta(days=3)) == 60


def test_last_day_is_not_overdue(desk):
    loan = desk.lend("1", "ann", DAY)
    assert desk.overdue(loan.due) == []


def test_reminders(desk):
    desk.lend("1", "ann", DAY)
    desk.lend("2", "ann", DAY)
    late = DAY + timedelta(days=40)
    assert desk.reminders(late) == {"ann": ["Emma", "Dracula"]}
